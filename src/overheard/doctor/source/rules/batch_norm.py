"""Batch normalisation in a network that is trained by DP-SGD."""

import ast
import re
from typing import final

from overheard.doctor.source.code import CallSite
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule

_LAYER = re.compile(
    r"torch\.nn\.(SyncBatchNorm|(Lazy)?BatchNorm[123]d)|(tensorflow\.)?keras\.layers\.BatchNorm\w+"
    r"|flax\.(linen|nnx)\.BatchNorm"
)
_NETWORK = re.compile(
    r"torchvision\.models\.(resnet|resnext|wide_resnet|densenet|mobilenet|efficientnet|googlenet"
    r"|inception|shufflenet|mnasnet|regnet)\w*"
)
_MENDED = frozenset(
    {
        "ModuleValidator.fix",
        "ModuleValidator.fix_and_validate",
        "replace_all_modules",
        "convert_batchnorm_modules",
        "replace_all_batch_norm_modules_",
        "privacy_validate_and_fix_modules",
        "map_model_to_opacus_model",
    }
)


@final
class BatchNorm(SourceRule):
    """Batch normalisation mixes the examples of a batch, so no clip bounds a single one."""

    name = "batch-norm"
    severity = "critical"
    title = "batch normalisation with DP-SGD"
    mend = "Replace it by group normalisation, such as by `ModuleValidator.fix` of Opacus."
    reference = 'JAX Privacy, "Sharp edges", cross-example operations; APPFL/APPFL #349'

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether gradients of single examples are clipped and get noise."""
        return app.has("dp_sgd") or any(one.is_on_gradient for one in app.draws)

    def examine(self, app: PrivateApp) -> Seen:
        """Look for layers of batch normalisation that nothing replaces."""
        if any(site.dotted.endswith(tuple(_MENDED)) for site in app.code.calls):
            return
        if any(one.name.startswith("fl4health.") for one in app.mechanisms):
            return  # its clients replace such layers
        for site in app.code.calls:
            if _LAYER.fullmatch(site.dotted) and _is_used(app, site):
                kind = "has a layer of batch normalisation"
            elif _NETWORK.fullmatch(site.dotted) and not any(
                one.arg == "norm_layer" for one in site.call.keywords
            ):
                kind = f"is {site.last}, which has layers of batch normalisation"
            else:
                continue
            step = next(one for one in app.mechanisms if one.kind in ("dp_sgd", "own noise"))
            yield CodeFault(
                f"The network {kind}: an example changes what others give to the gradient. "
                "Opacus refuses to train such a network unless the check is left out.",
                app.places(site.call, step.node),
            )
            return


def _is_used(app: PrivateApp, site: CallSite) -> bool:
    """Return whether the class around a layer, if there is one, is made somewhere."""
    parents = site.function.file.parents
    node: ast.AST | None = site.call
    while node is not None and not isinstance(node, ast.ClassDef):
        node = parents.get(node)
    if node is None:
        return True
    return any(
        app.code.class_named(one.call.func, one.function) is node for one in app.code.calls
    )
