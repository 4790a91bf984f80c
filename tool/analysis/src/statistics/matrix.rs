//! Three by three matrices, for least squares with three coefficients.

pub(crate) type Matrix = [[f64; 3]; 3];

/// Ones on the diagonal.
pub(crate) const IDENTITY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(&b).map(|(x, y)| x * y).sum()
}

pub(crate) fn times(m: &Matrix, vector: [f64; 3]) -> [f64; 3] {
    m.map(|row| dot(row, vector))
}

/// By cofactors; `None` if singular. Meant for matrices whose entries are about one.
pub(crate) fn inverted(m: Matrix) -> Option<Matrix> {
    let minor = |r: usize, c: usize| {
        let (r1, r2, c1, c2) = ((r + 1) % 3, (r + 2) % 3, (c + 1) % 3, (c + 2) % 3);
        m[r1][c1] * m[r2][c2] - m[r1][c2] * m[r2][c1]
    };
    let determinant: f64 = (0..3).map(|c| m[0][c] * minor(0, c)).sum();
    if determinant.abs() < 1e-12 || !determinant.is_finite() {
        return None;
    }
    Some([0, 1, 2].map(|r: usize| [0, 1, 2].map(|c: usize| minor(c, r) / determinant)))
}

#[test]
fn inverse() {
    let m = [[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]];
    let found = inverted(m).unwrap();
    let vector = times(&m, times(&found, [1.0, 2.0, 3.0]));
    assert!(vector.iter().zip([1.0, 2.0, 3.0]).all(|(a, b)| (a - b).abs() < 1e-12));
    assert_eq!(inverted([[1.0, 1.0, 1.0]; 3]), None);
}
