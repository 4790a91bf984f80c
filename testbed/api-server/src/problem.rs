//! The problems that every API server has.

use http_io::Problem;
use store::StoreError;

/// 404: no route has this path.
pub fn not_found() -> Problem {
    Problem::new(404, "there is nothing of this name")
}

/// The problem of a request whose statement the database did not carry out: 507 for a full disk, else 503.
pub fn of_store(error: &StoreError) -> Problem {
    let (status, hint) = match error {
        StoreError::DiskFull => (507, "nothing was changed; tell the administrator"),
        StoreError::Uncertain => (503, "check whether it was done before you try again"),
        _ => (503, "nothing was changed; try again in a moment"),
    };
    Problem::new(status, error.to_string()).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_disk_is_not_worth_a_retry() {
        assert_eq!(of_store(&StoreError::DiskFull).status(), 507);
        for error in
            [StoreError::Busy, StoreError::Unavailable("gone"), StoreError::Uncertain, StoreError::Failed]
        {
            assert_eq!(of_store(&error).status(), 503, "{error}");
        }
        assert!(!of_store(&StoreError::Uncertain).body().contains("nothing was changed"));
    }
}
