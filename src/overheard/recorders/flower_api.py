"""Everything of flwr's Message API that the recorder uses.

Importing it says what is missing if the installed flwr is another one.
"""

from importlib.metadata import PackageNotFoundError, version

TRIED = ("1.41", "1.42")
"""Versions of flwr with which the recorder was tried; see docs/versions.md."""


def _explain(error: ImportError) -> str:
    """Say what is missing in which flwr, and what to do."""
    try:
        installed = version("flwr")
    except PackageNotFoundError:
        return "flwr is not installed: run pip install '.[flower]' in a checkout of Overheard"
    return (
        f"flwr {installed} does not have what the recorder needs ({error}): install flwr "
        f"{' or '.join(TRIED)}. A legacy strategy is recorded with any flwr from 1.18 on, by "
        "overheard.recorders.flower_strategy"
    )


try:
    from flwr.app import (
        ArrayRecord,
        ConfigRecord,
        Context,
        Message,
        MessageType,
        Metadata,
        MetricRecord,
        RecordDict,
    )
    from flwr.clientapp.mod import LocalDpMod, adaptiveclipping_mod, fixedclipping_mod
    from flwr.clientapp.typing import ClientAppCallable, Mod
    from flwr.common.constant import SUPERLINK_NODE_ID, ErrorCode
    from flwr.proto.node_pb2 import NodeInfo
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import (
        DifferentialPrivacyServerSideAdaptiveClipping,
        DifferentialPrivacyServerSideFixedClipping,
    )
    from flwr.serverapp.strategy.dp_adaptive_clipping import DifferentialPrivacyAdaptiveBase
    from flwr.serverapp.strategy.dp_fixed_clipping import DifferentialPrivacyFixedClippingBase
    from flwr.supercore.run import Run
except ImportError as error:
    raise ImportError(_explain(error)) from error

__all__ = [
    "SUPERLINK_NODE_ID",
    "ArrayRecord",
    "ClientAppCallable",
    "ConfigRecord",
    "Context",
    "DifferentialPrivacyAdaptiveBase",
    "DifferentialPrivacyFixedClippingBase",
    "DifferentialPrivacyServerSideAdaptiveClipping",
    "DifferentialPrivacyServerSideFixedClipping",
    "ErrorCode",
    "Grid",
    "LocalDpMod",
    "Message",
    "MessageType",
    "Metadata",
    "MetricRecord",
    "Mod",
    "NodeInfo",
    "RecordDict",
    "Run",
    "adaptiveclipping_mod",
    "fixedclipping_mod",
]
