"""Dataset distillation: few synthetic examples that replace many real ones in training."""
