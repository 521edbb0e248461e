"""Which unlabelled nodes belong together (Eq. 2-4)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

MAX_PAIRS = 2**24  # all of which are held at once: those of 4,096 nodes
BLOCK = 2**18  # pairs at a time where there are more: 1 MiB


def same_top_k(z: Tensor, k: int) -> Tensor:
    """Eq. 3: y~_ij = 1 if z_i and z_j have the same set of k most active dimensions.

    Args:
        z: (n, hidden).
        k: How many dimensions; all of them where there are fewer.

    Returns:
        (n, n) of 0 and 1.
    """
    key = top_k_sets(z, k)
    return (key[:, None] == key[None, :]).to(z.dtype)


def top_k_sets(z: Tensor, k: int) -> Tensor:
    """Eq. 3 without enumerating a pair: each set of k most active dimensions is a whole number.

    Args:
        z: (n, hidden).
        k: How many dimensions; all of them where there are fewer.

    Returns:
        (n,) the number of each node's set.

    Examples:
        >>> top_k_sets(torch.tensor([[3.0, 2.0, 0.0], [0.0, 2.0, 3.0], [2.0, 3.0, 0.0]]), 2)
        tensor([0, 1, 0])
    """
    top = z.detach().topk(min(k, z.shape[1]), dim=1).indices.sort(dim=1).values  # (n, k)
    return torch.unique(top, dim=0, return_inverse=True)[1]


def similarity_softmax(logits: Tensor, logits_prime: Tensor) -> Tensor:
    """Eq. 2 as the released code reads it: s_ij = p_i . p'_j, p the softmax of h^u.

    Args:
        logits: (n, C) of h^u.
        logits_prime: (n, C) of h^u on perturbed nodes.

    Returns:
        (n, n).
    """
    return F.softmax(logits, dim=1) @ F.softmax(logits_prime, dim=1).t()


def similarity_sigmoid(logits: Tensor, logits_prime: Tensor) -> Tensor:
    """Eq. 2 as printed: s_ij = sigmoid(h^u(z_i) . h^u(z_j)).

    Args:
        logits: (n, C) of h^u.
        logits_prime: (n, C) of h^u.

    Returns:
        (n, n).
    """
    return torch.sigmoid(logits @ logits_prime.t())


def l_pseudo(s: Tensor, y: Tensor, eps: float = 1e-7) -> Tensor:
    """Eq. 4: binary cross-entropy of similarities against pairwise labels, mean over pairs.

    Args:
        s: (n, n) similarities in [0, 1].
        y: (n, n) of 0 and 1.
        eps: Keeps the logarithm finite.
    """
    return -(torch.where(y > 0, s, 1.0 - s) + eps).log().mean()


def l_pairs(
    logits: Tensor, logits_prime: Tensor, key: Tensor, similarity: str = "softmax"
) -> Tensor:
    """Eq. 2-4 at once, in memory linear in n: the mean over all n^2 pairs.

    Args:
        logits: (n, C) of h^u.
        logits_prime: (n, C) of h^u, on perturbed nodes or on the same.
        key: (n,) by which two nodes belong together, of `top_k_sets`.
        similarity: "softmax", `similarity_softmax`, or "sigmoid", `similarity_sigmoid`.

    Examples:
        >>> logits = torch.tensor([[9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
        >>> bool(l_pairs(logits, logits, torch.tensor([0, 0, 1])) < 0.01)
        True
    """
    if len(key) ** 2 <= MAX_PAIRS:
        of = similarity_softmax if similarity == "softmax" else similarity_sigmoid
        return l_pseudo(of(logits, logits_prime), (key[:, None] == key[None, :]).to(logits.dtype))
    if similarity == "softmax":
        both = F.softmax(logits, dim=1), F.softmax(logits_prime, dim=1)
        return _Pairs.apply(*both, key, False)  # type: ignore[no-untyped-call]
    return _Pairs.apply(logits, logits_prime, key, True)  # type: ignore[no-untyped-call]


class _Pairs(torch.autograd.Function):
    """`l_pseudo` of s_ij = p_i . q_j or its sigmoid, some rows at a time.

    A loss is one number, so its gradient for p and q is made along with it, and only multiplied
    afterwards: with r_ij = 1 - s_ij + eps for other pairs and -(s_ij + eps) for the same, the loss
    is the mean of -log |r| and its gradient for s_ij is 1 / (n^2 r_ij).
    """

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, p: Tensor, q: Tensor, key: Tensor, sigmoid: bool, eps: float = 1e-7
    ) -> Tensor:
        n = len(key)
        q_t = q.t().contiguous()
        # As fractional numbers they are compared several at a time; there are at most n of them.
        key = key.to(p.dtype)
        total = torch.zeros((), dtype=torch.float64, device=p.device)
        learns = any(ctx.needs_input_grad[:2])
        d_p, d_q_t = (torch.zeros_like(side) for side in (p, q_t)) if learns else (p, q_t)
        other = p.new_empty(max(1, BLOCK // n), n)
        for start in range(0, n, len(other)):
            rows = slice(start, start + len(other))
            s = p[rows] @ q_t
            if sigmoid:
                s.sigmoid_()
            r = torch.ne(key[rows, None], key, out=other[: len(s)]).sub(s)
            r.add_(other[: len(s)].mul_(2).sub_(1), alpha=eps)
            if learns:
                d = r.reciprocal()
                if sigmoid:
                    d.mul_(s).mul_(1.0 - s)
                torch.mm(d, q_t.t(), out=d_p[rows])
                d_q_t.addmm_(p[rows].t(), d)
            total -= r.abs_().log_().sum()
        if learns:
            ctx.save_for_backward(d_p.div_(n * n), d_q_t.div_(n * n))
        return (total / (n * n)).to(p.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:  # type: ignore[no-untyped-def]
        d_p, d_q_t = ctx.saved_tensors
        return grad * d_p, (grad * d_q_t).t(), None, None
