"""PatchDecomp: future patches attend to past ones, and the forecast is the sum of the past patches' contributions."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ibforecast.core.contracts import SelfExplaining
from ibforecast.core.sizes import Sizes
from ibforecast.core.tokens import spread, to_tokens
from ibforecast.core.window import Window
from ibforecast.layers.frame import InstanceFrame
from ibforecast.layers.masked import filled_with_mean
from ibforecast_lab.rivals.rival import Rival


@dataclass(frozen=True)
class PatchDecompConfig(Sizes):
    """With `multivariate`, every channel may contribute to every channel's forecast.

    Without it, channels share their weights and each is forecast from its own past.
    """

    patch_len: int = 12
    width: int = 64
    heads: int = 4
    layers: int = 2
    dropout: float = 0.1
    multivariate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("patch_len", "width", "heads", "layers")
        self.require_fraction("dropout")
        self.require_divides("patch_len", "look_back")
        self.require_divides("heads", "width")


class Residual(nn.Module):
    """A stack of two-layer ReLU blocks, each added to its input; no normalisation."""

    def __init__(self, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, width))
            for _ in range(layers)
        )

    def forward(self, rows: Float[Tensor, "*some width"]) -> Float[Tensor, "*some width"]:
        """Refine each row independently of the others."""
        for block in self.blocks:
            rows = rows + block(rows)
        return rows


class PatchDecomp(Rival, SelfExplaining):
    """The forecast is the window's level plus one additive contribution per source patch, exactly.

    Our choices: the scaling is the instance frame of the other rivals, patches tile the look-back without padding, and
    the multivariate form has one decoder for all channels.
    """

    def __init__(self, config: PatchDecompConfig) -> None:
        super().__init__()
        self.config = config
        width, patch_len = config.width, config.patch_len
        self.group = config.channels if config.multivariate else 1
        self.patches, self.future_patches = config.look_back // patch_len, -(-config.horizon // patch_len)
        bound = patch_len**-0.5
        self.embed = nn.Parameter(torch.empty(self.group, patch_len, width).uniform_(-bound, bound))
        self.embed_bias = nn.Parameter(torch.empty(self.group, width).uniform_(-bound, bound))
        positions = torch.empty(1, width, self.patches + self.future_patches)
        self.position = nn.Parameter(nn.init.xavier_normal_(positions)[0].T.contiguous())
        self.source_encoder = Residual(width, config.layers, config.dropout)
        self.target_encoder = Residual(width, config.layers, config.dropout)
        self.patch_bias = nn.Parameter(nn.init.xavier_normal_(torch.empty(1, self.patches * self.group, width))[0])
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.decoder = nn.Linear(width, patch_len * self.group, bias=False)

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Sum the contributions of all source patches."""
        attention, message, bias = self._messages(self._grouped(frame.remove(values)))
        patches = torch.einsum("nhos,nhsv->nov", attention, message) + bias.sum(dim=1, keepdim=True)
        # batch, then channel × horizon × 1 or, if multivariate, 1 × horizon × channel.
        future = torch.unflatten(self._unrolled(patches), 0, (len(values), -1))
        return frame.restore(future.transpose(1, 2).flatten(2))

    def contributions(self, window: Window) -> Float[Tensor, "batch patch channel horizon *out"]:
        """Return the contribution of each source patch to its own channel or, if multivariate, to every channel."""
        values = filled_with_mean(window.values, window.observed)
        frame = InstanceFrame.population(values)
        attention, message, bias = self._messages(self._grouped(frame.remove(values)))
        patches = torch.einsum("nhos,nhsv->nsov", attention, message) + bias[:, :, None]
        steps = self._unrolled(patches.flatten(0, 1))
        parts = torch.unflatten(steps, 0, (len(values), -1, self.patches, self.group))
        if self.config.multivariate:
            return parts.squeeze(1) * frame.scale[:, :, None, None]
        return parts.squeeze(-1).squeeze(-2).transpose(1, 2) * frame.scale[..., None]

    def importance(self, window: Window) -> Float[Tensor, "batch look_back channel"]:
        """Return the mean |contribution| over horizon and target channels; all steps of a patch are equal."""
        return spread(self.contributions(window).abs().flatten(3).mean(dim=3), self.config.patch_len)

    def _messages(
        self, rows: Float[Tensor, "row look_back group"]
    ) -> tuple[
        Float[Tensor, "row heads future_patch source"],
        Float[Tensor, "row heads source out"],
        Float[Tensor, "row source out"],
    ]:
        """Return the attention, each head's decoded value of each source, and each source's decoded bias."""
        tokens = to_tokens(rows, self.config.patch_len)
        past, future = torch.split(self.position, [self.patches, self.future_patches])
        embedded = torch.einsum("npgl,glw->npgw", tokens, self.embed) + self.embed_bias + past[:, None]
        source = self.source_encoder(embedded.flatten(1, 2))
        query = self._heads(self.query(self.target_encoder(future))[None])
        key, value = self._heads(self.key(source)), self._heads(self.value(source))
        attention = torch.softmax(query @ key.transpose(-2, -1) * key.shape[-1] ** -0.5, dim=-1)
        # Output projection and decoder are linear, so they can be applied before the sum over sources and heads:
        # this is why the contributions add up exactly.
        folded = torch.unflatten(self.decoder.weight @ self.out.weight, 1, (self.config.heads, -1))
        message = torch.einsum("nhsk,vhk->nhsv", value, folded)
        bias = (source * self.patch_bias).sum(dim=-1, keepdim=True) * self.decoder.weight.sum(dim=1)
        return attention, message, bias

    def _heads(self, rows: Float[Tensor, "row some width"]) -> Float[Tensor, "row heads some part"]:
        return torch.unflatten(rows, 2, (self.config.heads, -1)).transpose(1, 2)

    def _grouped(self, values: Float[Tensor, "batch look_back channel"]) -> Float[Tensor, "row look_back group"]:
        """Fold the channels into the batch unless they may contribute to each other."""
        if self.config.multivariate:
            return values
        return values.transpose(1, 2).flatten(0, 1)[..., None]

    def _unrolled(self, patches: Float[Tensor, "row future_patch out"]) -> Float[Tensor, "row horizon group"]:
        """Concatenate decoded patches and cut them at the horizon."""
        steps = torch.unflatten(patches, 2, (self.config.patch_len, self.group)).flatten(1, 2)
        return steps[:, : self.config.horizon]
