"""Stage 2: give every token a logit, which may depend on all other tokens. Paper: Eq. 4, v; Eq. 5, ℓ."""

from abc import ABC, abstractmethod
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import gelu, pad

from ibforecast.core.tokens import to_tokens
from ibforecast.layers.attention import EncoderLayer

REACH = 2
"""How many patches a layer of the mixing network sees to either side."""


class Scorer(nn.Module, ABC):
    """The part that gives every token a logit."""

    @abstractmethod
    def forward(self, deviation: Float[Tensor, "batch look_back channel"]) -> Float[Tensor, "batch patch channel"]:
        """Score all tokens of a window."""

    @abstractmethod
    def unseen(self) -> Float[Tensor, "*tokens"]:
        """Return the logits before any window is seen."""


class FixedScores(Scorer):
    """A fixed mask instead of a gate network: one learned logit per (patch, channel), the same for every window."""

    def __init__(self, bias: Float[Tensor, "patch channel"]) -> None:
        super().__init__()
        self.bias = nn.Parameter(bias.clone())

    def forward(self, deviation: Float[Tensor, "batch look_back channel"]) -> Float[Tensor, "batch patch channel"]:
        """Give every window the same scores."""
        return self.bias.expand(deviation.shape[0], *self.bias.shape)

    def unseen(self) -> Float[Tensor, "patch channel"]:
        """Return the scores themselves."""
        return self.bias


class GateNetwork(Scorer):
    """Embedding W_e d + e_p, a transformer g_φ over the tokens, a linear head W_g. Paper: Eq. 4, v; Eq. 5, ℓ.

    With attention "joint" every token sees all P·C tokens, with "within" only those of its own channel. `bias`
    is a learned logit per (patch, channel) that does not look at the window; None leaves it out.
    """

    def __init__(
        self,
        patch_len: int,
        patches: int,
        width: int,
        layers: int,
        heads: int,
        dropout: float,
        attention: Literal["joint", "within"],
        first_logit: float,
        bias: Float[Tensor, "patch channel"] | None,
    ) -> None:
        super().__init__()
        self.patch_len, self.joint = patch_len, attention == "joint"
        self.embed = nn.Linear(patch_len, width, bias=False)
        self.position = nn.Parameter(0.02 * torch.randn(patches, width))
        self.encoder = nn.Sequential(*(EncoderLayer(width, heads, 2 * width, dropout) for _ in range(layers)))
        self.head = nn.Linear(width, 1)
        nn.init.constant_(self.head.bias, first_logit)
        self.bias = nn.Parameter(torch.zeros(()) if bias is None else bias.clone(), requires_grad=bias is not None)

    def forward(self, deviation: Float[Tensor, "batch look_back channel"]) -> Float[Tensor, "batch patch channel"]:
        """Score all tokens of a window against each other."""
        tokens = to_tokens(deviation, self.patch_len).transpose(1, 2)
        embedded = self.embed(tokens) + self.position  # batch channel patch width
        rows = embedded.flatten(1, 2) if self.joint else embedded.flatten(0, 1)
        logits: Tensor = self.head(self.encoder(rows)).reshape(embedded.shape[:3])
        return logits.transpose(1, 2) + self.bias

    def unseen(self) -> Float[Tensor, "*tokens"]:
        """Return the bias."""
        return self.bias


class MixingNetwork(Scorer):
    """A gate network without attention, whose cost is proportional to the number of tokens.

    Every token sees its own values and how large they are, its neighbours in time within `REACH` patches, the mean of
    all channels at its time, and the mean of its channel over the window. At first its logits are the bias.
    """

    def __init__(
        self,
        patch_len: int,
        patches: int,
        channels: int,
        width: int,
        layers: int,
        bias: Float[Tensor, "patch channel"] | None,
    ) -> None:
        super().__init__()
        self.patch_len = patch_len
        self.embed = nn.Linear(2 * patch_len, width)
        self.position = nn.Parameter(0.02 * torch.randn(patches, width))
        self.channel = nn.Parameter(0.02 * torch.randn(channels, 1, width))
        self.layers = nn.ModuleList(_Mixing(width) for _ in range(layers))
        self.head = nn.Linear(width, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.bias = nn.Parameter(torch.zeros(patches, channels) if bias is None else bias.clone())

    def forward(self, deviation: Float[Tensor, "batch look_back channel"]) -> Float[Tensor, "batch patch channel"]:
        """Score all tokens of a window."""
        tokens = to_tokens(deviation, self.patch_len).transpose(1, 2)
        hidden = self.embed(torch.cat([tokens, tokens.abs()], dim=-1)) + self.position + self.channel
        for layer in self.layers:
            hidden = layer(hidden)
        logits: Tensor = self.head(hidden).squeeze(-1)
        return logits.transpose(1, 2) + self.bias

    def unseen(self) -> Float[Tensor, "patch channel"]:
        """Return the bias."""
        return self.bias


class _Mixing(nn.Module):
    """One residual layer of a mixing network."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.near = nn.Linear((2 * REACH + 1) * width, width)
        self.across, self.along = nn.Linear(width, width), nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, hidden: Float[Tensor, "batch channel patch width"]) -> Float[Tensor, "batch channel patch width"]:
        """Add to every token what its surroundings say."""
        rows, patches = self.norm(hidden), hidden.shape[2]
        padded = pad(rows, (0, 0, REACH, REACH))
        near = torch.cat([padded[:, :, shift : shift + patches] for shift in range(2 * REACH + 1)], dim=-1)
        means = self.across(rows.mean(dim=1, keepdim=True)) + self.along(rows.mean(dim=2, keepdim=True))
        mixed: Tensor = hidden + self.out(gelu(self.near(near) + means))
        return mixed


def spacing(patches: int, allowed: int, recent: int) -> int:
    """Return the smallest distance of patches at which they and the `recent` newest ones are at most `allowed`."""
    ages = range(patches)
    return next((n for n in ages[1:] if len(ages[:recent]) + len(ages[::n]) - len(ages[:recent:n]) <= allowed), patches)


def first_bias(patches: int, channels: int, recent: int, every: int = 0) -> Float[Tensor, "patch channel"] | None:
    """Return the first bias: +2 for the `recent` newest patches and for every `every`-th one, −1 elsewhere.

    Patches are counted back from the newest. None if `recent` and `every` are both 0.
    """
    if recent == every == 0:
        return None
    age = torch.arange(patches - 1, -1, -1)
    favoured = age < recent if every == 0 else (age < recent) | (age % every == 0)
    return torch.zeros(patches, channels) + torch.where(favoured, 2.0, -1.0)[:, None]
