//! Isotonic regression by pooling adjacent violators (Ayer et al. 1955).

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
}
