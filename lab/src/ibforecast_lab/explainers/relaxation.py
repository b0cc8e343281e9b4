"""The scalar that gradients explain: the energy of the soft surrogate's forecast, in a held context."""

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.explain.subject import Points, Subject


def energy(subject: Subject, points: Points) -> Float[Tensor, "some batch"]:
    """Return half the squared norm of each forecast over horizon and channels, ½‖Ŷ‖²."""
    return subject.relaxed(points).square().sum(dim=(2, 3)) / 2


def gradient(subject: Subject, points: Points) -> Points:
    """Differentiate the energy by the values at each point, without changing the gradient of any parameter."""
    with torch.enable_grad():
        points = points.detach().requires_grad_()
        total = energy(subject, points).sum()
    slope: Tensor = torch.autograd.grad(total, points, materialize_grads=True)[0]
    return slope
