"""Readers of models that PyTorch, Keras and ONNX save; no code of a file is run."""
