//! Regression: isotonic, by pooling adjacent violators (Ayer et al. 1955), and three by three matrices for least squares
//! with three coefficients.

/// The non-decreasing sequence nearest to `values` in weighted least squares. Weights are positive.
pub(crate) fn non_decreasing(values: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<Block> = Vec::with_capacity(values.len());
    for (&value, &weight) in values.iter().zip(weights) {
        let mut block = Block { value, weight, length: 1 };
        while let Some(previous) = blocks.pop_if(|previous| previous.value >= block.value) {
            block = previous.pooled_with(&block);
        }
        blocks.push(block);
    }
    blocks.iter().flat_map(|block| std::iter::repeat_n(block.value, block.length)).collect()
}

struct Block {
    value: f64,
    weight: f64,
    length: usize,
}

impl Block {
    fn pooled_with(&self, next: &Self) -> Self {
        let weight = self.weight + next.weight;
        let share = if weight.is_finite() { next.weight / weight } else { 0.5 };
        Self {
            value: self.value + share * (next.value - self.value),
            weight,
            length: self.length + next.length,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pools_violators_by_weight() {
        assert_eq!(non_decreasing(&[1.0, 3.0, 2.0, 4.0], &[1.0, 1.0, 1.0, 1.0]), [1.0, 2.5, 2.5, 4.0]);
        assert_eq!(non_decreasing(&[3.0, 0.0], &[2.0, 1.0]), [2.0, 2.0]);
    }

    proptest! {
        #[test]
        fn rises_and_keeps_the_mean(values in proptest::collection::vec(0.0f64..100.0, 1..30)) {
            let fitted = non_decreasing(&values, &vec![1.0; values.len()]);
            prop_assert!(fitted.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9));
            prop_assert!((fitted.iter().sum::<f64>() - values.iter().sum::<f64>()).abs() < 1e-6);
        }
    }

    #[test]
    fn inverse() {
        let m = [[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]];
        let found = inverted(m).unwrap();
        let vector = times(&m, times(&found, [1.0, 2.0, 3.0]));
        assert!(vector.iter().zip([1.0, 2.0, 3.0]).all(|(a, b)| (a - b).abs() < 1e-12));
        assert_eq!(inverted([[1.0, 1.0, 1.0]; 3]), None);
    }
}
