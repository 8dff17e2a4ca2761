"""How files of weights that cannot be read are converted to files that can."""

from dataclasses import dataclass

_TURNED = "np.moveaxis(value, (-1, -2), (0, 1))"
"""Turns a kernel of (axes of an image) x inputs x outputs to outputs x inputs x axes."""

_SAVE_ARRAYS = (
    "np.savez('model.npz', **saved) "
    "if isinstance(saved, dict) else np.savez('model.npz', *saved)"
)

_PARAMETERS_OF_SKLEARN = (
    "saved = {'coef_': saved.coef_, 'intercept_': saved.intercept_} "
    "if hasattr(saved, 'coef_') else saved"
)

_FLOWER_ADVICE = (
    "turn Flower's Parameters into arrays first, by flwr.common.parameters_to_ndarrays(saved)"
)

_MAY_EXECUTE = "may execute code when it is opened"


@dataclass(frozen=True, slots=True)
class Conversion:
    """How files of one format are converted.

    Args:
        suffixes: suffixes of its files.
        why: why such a file is not read, as a predicate.
        line: a line of Python that converts `model` with the first suffix; "" = there is none.
        advice: what to do beside it, as a clause; "" = nothing.

    """

    suffixes: tuple[str, ...]
    why: str
    line: str
    advice: str = ""


CONVERSIONS = (
    Conversion(
        (".pt", ".pth", ".bin", ".ckpt"),
        "has more than tensors",
        "from safetensors.torch import save_file; import torch; "
        "saved = torch.load('model.pt', map_location='cpu', weights_only=True); "
        "saved = saved if isinstance(saved, dict) "
        "else {str(number): one for number, one in enumerate(saved)}; "
        "dicts = [saved]; [dicts.append(one) for found in dicts for name, one in found.items() "
        "if isinstance(one, dict) and isinstance(name, str)]; "
        "state = max(dicts, key=lambda one: sum(map(torch.is_tensor, one.values()))); "
        "save_file({name: value.contiguous().clone() for name, value in state.items() "
        "if torch.is_tensor(value)}, 'model.safetensors')",
        "of nested state dicts such as saved['model'] it takes the one with most tensors; if "
        "the file holds a whole network, save its state_dict() first",
    ),
    Conversion(
        (".h5", ".hdf5", ".keras"),
        "has more than the weights of Keras",
        "import keras, numpy as np; "
        "model = keras.models.load_model('model.h5', compile=False); "
        "np.savez('model.npz', **{getattr(one, 'path', one.name): "
        f"{_TURNED} if 'kernel' in one.name and value.ndim > 1 else value "
        "for one, value in zip(model.weights, model.get_weights())})",
        "it transposes kernels, which Keras stores as inputs x outputs; if the file holds "
        "weights only, build the model and use model.load_weights",
    ),
    Conversion(
        (".onnx",),
        "has more than the weights of ONNX",
        "import numpy as np, onnx; from onnx.numpy_helper import to_array; "
        "np.savez('model.npz', **{one.name: to_array(one) "
        "for one in onnx.load('model.onnx').graph.initializer})",
        "transpose kernels whose names contain MatMul, which are inputs x outputs",
    ),
    Conversion(
        (".tflite",),
        "is a file of TensorFlow Lite, whose weights are often whole-number codes in another "
        "order",
        "",
        "convert the Keras model that it was made from: name its .keras or .h5 file global, "
        "and import again to see how",
    ),
    Conversion(
        (".msgpack",),
        "is a file of Flax",
        "from flax.serialization import msgpack_restore; "
        "from flax.traverse_util import flatten_dict; import numpy as np, pathlib; "
        "saved = flatten_dict(msgpack_restore(pathlib.Path('model.msgpack').read_bytes()), "
        "sep='.'); "
        f"np.savez('model.npz', **{{name: {_TURNED} "
        "if name.endswith('kernel') and value.ndim > 1 else value "
        "for name, value in saved.items()})",
        "it transposes kernels, which Flax stores as inputs x outputs",
    ),
    Conversion(
        (".pkl", ".pickle"),
        _MAY_EXECUTE,
        "import numpy as np, pathlib, pickle; "
        "saved = pickle.loads(pathlib.Path('model.pkl').read_bytes()); "
        f"{_PARAMETERS_OF_SKLEARN}; {_SAVE_ARRAYS}",
        _FLOWER_ADVICE,
    ),
    Conversion(
        (".joblib",),
        _MAY_EXECUTE,
        "import joblib, numpy as np; saved = joblib.load('model.joblib'); "
        f"{_PARAMETERS_OF_SKLEARN}; {_SAVE_ARRAYS}",
    ),
    Conversion(
        (".npy",),
        _MAY_EXECUTE,
        "import numpy as np; saved = np.load('model.npy', allow_pickle=True); "
        "saved = saved.tolist() if saved.dtype == object else [saved]; "
        f"{_SAVE_ARRAYS}",
        _FLOWER_ADVICE,
    ),
)
"""The formats that are known, apart from Python objects in `.npz` files."""

FLOWER_PARAMETERS_LINE = (
    "import numpy as np; from flwr.common import parameters_to_ndarrays; "
    "np.savez('converted.npz', *parameters_to_ndarrays("
    "np.load('model.npz', allow_pickle=True)['arr_0'].item()))"
)
"""Converts an `.npz` file with Flower's `Parameters`."""

OBJECT_ARRAY_LINE = (
    "import numpy as np; saved = np.load('model.npz', allow_pickle=True)['arr_0'].tolist(); "
    "np.savez('converted.npz', **saved) if isinstance(saved, dict) "
    "else np.savez('converted.npz', *saved)"
)
"""Converts an `.npz` file with a dict or a list of arrays."""

_CONVERSIONS = {suffix: one for one in CONVERSIONS for suffix in one.suffixes}


def explain_conversion(suffix: str) -> str:
    """Return why a file with this suffix is not read and how to convert it; "" if unknown."""
    known = _CONVERSIONS.get(suffix.lower())
    if known is None:
        return ""
    refusal = f"{known.why}, so it is not read: "
    return refusal + (how_to_convert(suffix) or known.advice)


def how_to_convert(suffix: str) -> str:
    """Return how to convert a file with this suffix, as a clause; "" if no line does it."""
    known = _CONVERSIONS.get(suffix.lower())
    if known is None or not known.line:
        return ""
    line = known.line.replace(f"'model{known.suffixes[0]}'", f"'model{suffix.lower()}'")
    advice = known.advice and f" ({known.advice})"
    return f"convert it on a machine where you trust it, by `{line}`{advice}"


def explain_objects(content: bytes) -> str:
    """Return how to convert an array of Python objects in an `.npz` file.

    Args:
        content: the first bytes of the array's pickle, which is never opened.

    """
    if b"flwr." in content and b"Parameters" in content:
        what, line = "it holds Flower's Parameters", FLOWER_PARAMETERS_LINE
    else:
        what, line = "it holds Python objects", OBJECT_ARRAY_LINE
    return (
        f"{what}, which are never unpickled, as that may execute code: convert the file on a "
        f"machine where you trust it, by `{line}`, with the name of its array in place of arr_0"
    )
