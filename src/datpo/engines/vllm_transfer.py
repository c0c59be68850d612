"""Weights into a vLLM of the same process: vLLM's own ways of transfer go from one process to another.

Importing this module adds the way to vLLM's registry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor
from vllm.distributed.weight_transfer import WeightTransferEngine, WeightTransferEngineFactory
from vllm.distributed.weight_transfer.base import WeightTransferInitInfo, WeightTransferUpdateInfo
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

NAME = "datpo_in_process"


@dataclass
class Start(WeightTransferInitInfo):
    """There is nothing to agree on."""


@dataclass
class Weights(WeightTransferUpdateInfo):
    """All weights by the names that they have in a checkpoint."""

    weights: Iterable[tuple[str, Tensor]]


class InProcessTransfer(WeightTransferEngine[Start, Weights]):
    """Loads tensors of this process as if they came from a checkpoint."""

    init_info_cls = Start
    update_info_cls = Weights

    def init_transfer_engine(self, init_info: Start) -> None:
        """Nothing is to be set up."""

    def start_weight_update(self) -> None:
        """Make every layer ready to take weights as they come from a checkpoint."""
        initialize_layerwise_reload(self.model)

    def update_weights(self, update_info: dict[str, Iterable[tuple[str, Tensor]]]) -> None:
        """Load all weights. What vLLM does here itself waits for a GPU, which a copy on one stream need not."""
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info: Weights) -> None:
        """Load them into the layers."""
        self.model.load_weights(update_info.weights)

    def finish_weight_update(self) -> None:
        """Lay the weights out as the kernels want them."""
        finalize_layerwise_reload(self.model, self.model_config)
        for layer in self.model.modules():
            # A head that is tied to the embeddings has got no weights by its own name, and on a CPU it works on a
            # packed copy, which would stay that of the old ones.
            if isinstance(layer, ParallelLMHead):
                layer.quant_method.process_weights_after_loading(layer)

    def shutdown(self) -> None:
        """Nothing is held."""


WeightTransferEngineFactory.register_engine(NAME, InProcessTransfer)
