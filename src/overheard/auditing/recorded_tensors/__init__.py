"""The tensors of a recording that are the model, under the names of the model."""
