"""Multi-head attention and one encoder layer, with the same arithmetic with and without gradients.

PyTorch's own layer uses other kernels at inference, whose last bits differ from those of training; a mask that must be
recomputed bit for bit cannot depend on it.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

PART = 1024
"""The most windows that are computed at once, so that intermediate results stay in the processor's cache."""


def in_parts(windows: Shaped[Tensor, "batch ..."]) -> Sequence[Tensor]:
    """Split windows into parts of about the same size."""
    return windows.tensor_split(ceil(len(windows) / PART))


class Attention(nn.Module):
    """Scaled dot-product attention with `heads` heads over the second axis."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        nn.init.xavier_uniform_(self.query.weight)
        nn.init.xavier_uniform_(self.key_value.weight)
        for layer in (self.query, self.key_value, self.out):
            nn.init.zeros_(layer.bias)

    def forward(
        self, query: Float[Tensor, "batch some width"], source: Float[Tensor, "batch others width"]
    ) -> Float[Tensor, "batch some width"]:
        """Return for every query row a weighted sum of the source rows."""
        q, (k, v) = self._split(self.query(query)), map(self._split, self.key_value(source).chunk(2, dim=-1))
        weights = torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, dim=-1)
        gathered: Tensor = self.out((self.dropout(weights) @ v).transpose(1, 2).flatten(2))
        return gathered

    def of_versions(
        self,
        queries: Iterable[Float[Tensor, "1 1 width"]],
        versions: Float[Tensor, "version others width"],
        which: Int[Tensor, "some others"],
    ) -> Iterator[Float[Tensor, "some width"]]:
        """Yield, for each query row, a weighted sum of source rows that come from few versions of each row.

        `which` is the version of each source row in each window. Keys and values are computed once per version.
        """
        count, others, _ = versions.shape
        k, v = map(self._split, self.key_value(versions).chunk(2, dim=-1))
        # One table per head, with a row for every version of every source row.
        tables = v.transpose(0, 1).reshape(self.heads, count * others, -1)
        rows = in_parts(which * others + torch.arange(others, device=which.device))
        for query in queries:
            q = self._split(self.query(query))
            scores = (q * k).sum(dim=-1) * q.shape[-1] ** -0.5
            scores = scores.transpose(0, 1).reshape(self.heads, -1)
            yield torch.cat([self._gathered(scores, tables, some) for some in rows])

    def _gathered(
        self,
        scores: Float[Tensor, "heads row"],
        tables: Float[Tensor, "heads row part"],
        rows: Int[Tensor, "some others"],
    ) -> Float[Tensor, "some width"]:
        """Return, for each window, the weighted sum of its rows, given their scores in every head."""
        # Not `scores[:, rows]`, which is four times slower.
        weights = torch.softmax(scores.index_select(1, rows.flatten()).view(-1, *rows.shape), dim=-1)
        heads = [
            embedding_bag(rows, table, per_sample_weights=weight, mode="sum")
            for table, weight in zip(tables, weights, strict=True)
        ]
        gathered: Tensor = self.out(torch.cat(heads, dim=-1))
        return gathered

    def _split(self, rows: Float[Tensor, "batch some width"]) -> Float[Tensor, "batch heads some part"]:
        batch, some, width = rows.shape
        return rows.view(batch, some, self.heads, width // self.heads).transpose(1, 2)


class EncoderLayer(nn.Module):
    """A post-norm transformer layer: attention, then a GELU feed-forward block, each added and normalised."""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.feed_forward = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Float[Tensor, "batch some width"]) -> Float[Tensor, "batch some width"]:
        """Return every row in the context of all others."""
        attended = self.attention_norm(rows + self.dropout(self.attention(rows, rows)))
        contextualised: Tensor = self.feed_forward_norm(attended + self.dropout(self.feed_forward(attended)))
        return contextualised
