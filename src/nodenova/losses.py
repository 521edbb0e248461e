"""Losses of the methods as pure functions: tensors in, one number out.

In order: pairs of unlabelled nodes (SWORD, Eq. 2-4); soft assignments to centers (Xie et al. 2016;
Han et al. 2019); contrast with neighbors (Zhong et al., CVPR 2021); two views (Wen et al.,
ICCV 2023); keeping old classes without their nodes (Eq. 10-11); self-training and perturbation
(Eq. 6-8).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

MAX_PAIRS = 2**24  # pairs that are held in memory at once: those of 4,096 nodes
BLOCK = 2**18  # pairs per block where there are more: 1 MiB


def same_top_k(z: Tensor, k: int) -> Tensor:
    """Eq. 3: y~_ij = 1 if z_i and z_j have the same set of k most active dimensions.

    Args:
        z: (n, hidden) embeddings.
        k: Number of dimensions, all of them if there are fewer.

    Returns:
        (n, n) of 0 and 1.
    """
    key = top_k_sets(z, k)
    return (key[:, None] == key[None, :]).to(z.dtype)


def top_k_sets(z: Tensor, k: int) -> Tensor:
    """Eq. 3 without enumerating pairs: number the sets of k most active dimensions.

    Args:
        z: (n, hidden) embeddings.
        k: Number of dimensions, all of them if there are fewer.

    Returns:
        (n,) number of the set of each node.

    Examples:
        >>> top_k_sets(torch.tensor([[3.0, 2.0, 0.0], [0.0, 2.0, 3.0], [2.0, 3.0, 0.0]]), 2)
        tensor([0, 1, 0])
    """
    top = z.detach().topk(min(k, z.shape[1]), dim=1).indices.sort(dim=1).values  # (n, k)
    return torch.unique(top, dim=0, return_inverse=True)[1]


def similarity_softmax(logits: Tensor, logits_prime: Tensor) -> Tensor:
    """Eq. 2 as released: s_ij = p_i . p'_j, p the softmax of h^u.

    Args:
        logits: (n, C) logits of h^u.
        logits_prime: (n, C) logits of h^u on perturbed nodes.

    Returns:
        (n, n) similarities.
    """
    return F.softmax(logits, dim=1) @ F.softmax(logits_prime, dim=1).t()


def similarity_sigmoid(logits: Tensor, logits_prime: Tensor) -> Tensor:
    """Eq. 2 as printed: s_ij = sigmoid(h^u(z_i) . h^u(z_j)).

    Args:
        logits: (n, C) logits of h^u.
        logits_prime: (n, C) logits of h^u.

    Returns:
        (n, n) similarities.
    """
    return torch.sigmoid(logits @ logits_prime.t())


def l_pseudo(s: Tensor, y: Tensor, eps: float = 1e-7) -> Tensor:
    """Eq. 4: binary cross-entropy of similarities against pairwise labels, mean over pairs.

    Args:
        s: (n, n) similarities in [0, 1].
        y: (n, n) labels of the pairs, 0 or 1.
        eps: Constant that keeps the logarithm finite.
    """
    return -(torch.where(y > 0, s, 1.0 - s) + eps).log().mean()


def l_pairs(
    logits: Tensor, logits_prime: Tensor, key: Tensor, similarity: str = "softmax"
) -> Tensor:
    """Eq. 2-4 at once, in memory linear in n: the mean over all n^2 pairs.

    Args:
        logits: (n, C) logits of h^u.
        logits_prime: (n, C) logits of h^u, on perturbed nodes or on the same.
        key: (n,) numbers from `top_k_sets`; equal numbers belong together.
        similarity: "softmax" for `similarity_softmax`, "sigmoid" for `similarity_sigmoid`.

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
    """`l_pseudo` of s_ij = p_i . q_j or its sigmoid, in blocks of rows."""

    # A loss is one number, so its gradient for p and q is computed along with it and multiplied
    # afterwards: with r_ij = 1 - s_ij + eps for other pairs and -(s_ij + eps) for the same, the
    # loss is the mean of -log |r| and its gradient for s_ij is 1 / (n^2 r_ij).

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, p: Tensor, q: Tensor, key: Tensor, sigmoid: bool, eps: float = 1e-7
    ) -> Tensor:
        n = len(key)
        q_t = q.t().contiguous()
        # Floating-point numbers are compared several at a time; there are at most n of them.
        key = key.to(p.dtype)
        total = torch.zeros((), dtype=torch.float64, device=p.device)
        learns = any(ctx.needs_input_grad)
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


def student_t(z: Tensor, mu: Tensor, alpha: float = 1.0) -> Tensor:
    """Student's t kernel: soft assignment of each node to each center.

        q_ij ~ (1 + |z_i - mu_j|^2 / alpha)^(-(alpha + 1) / 2),  rows summing to 1

    Args:
        z: (n, hidden) nodes.
        mu: (C, hidden) centers.
        alpha: Degrees of freedom.

    Returns:
        (n, C) soft assignments.
    """
    # Squared distances without the square root, whose gradient is not defined where a node lies on
    # a center.
    distance = z.square().sum(1, keepdim=True) + mu.square().sum(1) - 2.0 * z @ mu.t()  # (n, C)
    return F.softmax(-(alpha + 1.0) / 2.0 * (distance.clamp_min(0.0) / alpha).log1p(), dim=1)


def target_distribution(q: Tensor) -> Tensor:
    """The target of deep clustering: sharper than q, balanced over the clusters.

        p_ij ~ q_ij^2 / f_j,  f_j = sum_i q_ij,  rows summing to 1

    Args:
        q: (n, C) soft assignments.

    Returns:
        (n, C) without gradient.
    """
    q = q.detach()
    p = q.square() / q.sum(dim=0)
    return p / p.sum(dim=1, keepdim=True)


def l_cluster(p: Tensor, q: Tensor, eps: float = 1e-12) -> Tensor:
    """KL(p || q) = sum_j p_ij log(p_ij / q_ij), mean over nodes.

    Args:
        p: (n, C) targets, without gradient.
        q: (n, C) soft assignments.
        eps: Constant that keeps the logarithms finite.
    """
    return (p * ((p + eps).log() - (q + eps).log())).sum(dim=1).mean()


def same_direction(z: Tensor, threshold: float) -> Tensor:
    """y~_ij = 1 if cos(z_i, z_j) > threshold.

    Args:
        z: (n, hidden) embeddings.
        threshold: Threshold of the cosine.

    Returns:
        (n, n) of 0 and 1; the diagonal is 1.
    """
    unit = F.normalize(z.detach(), dim=1)
    y = (unit @ unit.t() > threshold).to(z.dtype)
    return y.fill_diagonal_(1.0)


def nearest(s: Tensor, m: int) -> Tensor:
    """Mark the m other nodes that each node is most similar to.

    Args:
        s: (n, n) similarities.
        m: Number of nodes, all others if there are fewer.

    Returns:
        (n, n) of 0 and 1, the diagonal 0.
    """
    n = len(s)
    others = s.detach().clone().fill_diagonal_(-torch.inf)
    top = others.topk(min(m, n - 1), dim=1).indices  # (n, m)
    return torch.zeros_like(others).scatter_(1, top, 1.0)


def mixed_negatives(z: Tensor, memory: Tensor, old: Tensor, hard: int) -> Tensor:
    """Hard negatives, mixed from certain negatives: least similar nodes and old classes.

    The e entries of `memory` least similar to z_i are mixed one to one with the e rows of `old`,
    once 1 : 2 and once 2 : 1, and scaled to unit length; the `hard` mixtures most similar to z_i
    are kept.

    Args:
        z: (n, hidden) embeddings of unit length, like the next two.
        memory: (M, hidden) candidates for the least similar.
        old: (e, hidden) features of old classes.
        hard: Number of mixtures to keep.

    Returns:
        (n, min(hard, 2 e), hidden) without gradient.
    """
    z = z.detach()
    memory = memory.detach()
    e = min(len(old), len(memory))
    easy = memory[(z @ memory.t()).topk(e, dim=1, largest=False).indices]  # (n, e, hidden)
    mixtures = torch.cat([easy + 2.0 * old[:e], 2.0 * easy + old[:e]], dim=1)  # (n, 2e, hidden)
    mixtures = F.normalize(mixtures, dim=2)
    top = (mixtures @ z[:, :, None]).squeeze(2).topk(min(hard, 2 * e), dim=1).indices  # (n, hard)
    return mixtures.gather(1, top[:, :, None].expand(-1, -1, z.shape[1]))


def l_contrast(s: Tensor, positive: Tensor) -> Tensor:
    """- 1/|P_i| sum over j in P_i of log softmax_j(s_i), mean over nodes.

    A node without positives counts as 0.

    Args:
        s: (n, M) similarities over the temperature, -inf for excluded entries.
        positive: (n, M) of 0 and 1, membership in P_i.
    """
    log_p = F.log_softmax(s, dim=1)
    of_positives = torch.where(positive > 0, log_p, torch.zeros_like(log_p)).sum(dim=1)
    return -(of_positives / positive.sum(dim=1).clamp_min(1.0)).mean()


def l_neighborhood(
    z: Tensor, z_prime: Tensor, old: Tensor, m: int, alpha: float, tau: float
) -> Tensor:
    """alpha l(z, z') + (1 - alpha) mean over the m nearest others z~ of l(z, z~), mean over nodes.

        l(z, y) = - log exp(z . y / tau) / (exp(z . z' / tau) + sum over y~ of exp(z . y~ / tau))

    with y~ the others and N: e hard negatives, mixed from the others least similar to z and from
    `old`, which belong to other classes. Gradient flows into the first z only.

    Args:
        z: (n, hidden) embeddings of unit length, like the next two.
        z_prime: (n, hidden) second view of the same nodes.
        old: (e, hidden) features of old classes; may be empty.
        m: Number of nearest others that count as positive.
        alpha: Weight of the second view against the nearest others.
        tau: Temperature.
    """
    s = view_and_others(z, z_prime)  # (n, 1 + n)
    is_view, is_near = torch.zeros_like(s), torch.zeros_like(s)
    is_view[:, 0] = 1.0
    is_near[:, 1:] = nearest(s[:, 1:], m)
    if len(old):
        hard = mixed_negatives(z, z.detach(), old.detach(), len(old))  # (n, e, hidden)
        s = torch.cat([s, (hard @ z[:, :, None]).squeeze(2)], dim=1)  # (n, 1 + n + e)
        none = s.new_zeros(len(s), s.shape[1] - is_view.shape[1])
        is_view = torch.cat([is_view, none], dim=1)
        is_near = torch.cat([is_near, none], dim=1)
    s = s / tau
    return alpha * l_contrast(s, is_view) + (1 - alpha) * l_contrast(s, is_near)


def l_same_class(z: Tensor, z_prime: Tensor, y: Tensor, tau: float) -> Tensor:
    """Mean over z' and the others z~ of the same class of l(z, z~), without N; mean over nodes.

    l is that of `l_neighborhood`. Gradient flows into the first z only.

    Args:
        z: (n, hidden) embeddings of unit length.
        z_prime: (n, hidden) second view of the same nodes, of unit length.
        y: (n,) classes.
        tau: Temperature.
    """
    same = (y[:, None] == y[None, :]).to(z.dtype).fill_diagonal_(0.0)  # (n, n)
    positive = torch.cat([torch.ones_like(same[:, :1]), same], dim=1)  # (n, 1 + n)
    return l_contrast(view_and_others(z, z_prime) / tau, positive)


def view_and_others(z: Tensor, z_prime: Tensor) -> Tensor:
    """Return (n, 1 + n) similarities of z to its second view, then to all nodes, -inf to itself."""
    alone = torch.eye(len(z), dtype=torch.bool, device=z.device)
    among = (z @ z.detach().t()).masked_fill(alone, -torch.inf)
    return torch.cat([(z * z_prime.detach()).sum(dim=1, keepdim=True), among], dim=1)


def l_group_contrast(h: Tensor, y: Tensor, tau: float) -> Tensor:
    """Supervised contrast (Khosla et al. 2020): rows of a group attract, all other rows repel.

        - 1/|P_i| sum over j in P_i of log softmax over j != i of (h_i . h_j / tau), mean over rows

    P_i are the other rows with y_i. Where a group is the two views of a node it is the contrast
    without labels (InfoNCE).

    Args:
        h: (n, size) rows of unit length, at least two.
        y: (n,) group of each row.
        tau: Temperature.

    Examples:
        >>> h = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        >>> bool(l_group_contrast(h, torch.tensor([0, 0, 1, 1]), 0.1) < 0.01)
        True
    """
    alone = torch.eye(len(h), dtype=torch.bool, device=h.device)
    s = (h @ h.t() / tau).masked_fill(alone, -torch.inf)
    positive = ((y[:, None] == y[None, :]) & ~alone).to(h.dtype)
    return l_contrast(s, positive)


def l_views(logits: Tensor, logits_prime: Tensor, tau_s: float, tau_t: float) -> Tensor:
    """Self-distillation: each view is taught by the other, mean over nodes and both directions.

        - sum_c q'_c log p_c,  q' = softmax(logits' / tau_t) without gradient,
                               p  = softmax(logits / tau_s)

    Args:
        logits: (n, C) logits of one view.
        logits_prime: (n, C) logits of the other.
        tau_s: Temperature of the student.
        tau_t: Temperature of the teacher, which is sharper.
    """
    return 0.5 * (
        _taught(logits, logits_prime, tau_s, tau_t) + _taught(logits_prime, logits, tau_s, tau_t)
    )


def _taught(student: Tensor, teacher: Tensor, tau_s: float, tau_t: float) -> Tensor:
    return F.cross_entropy(student / tau_s, F.softmax(teacher.detach() / tau_t, dim=1))


def l_mean_entropy(logits: Tensor, tau: float) -> Tensor:
    """log C minus the entropy of the mean prediction: 0 where all classes are used alike.

    Args:
        logits: (n, C) logits, of both views one after the other.
        tau: Temperature.

    Examples:
        >>> round(float(l_mean_entropy(torch.eye(4), 0.1)), 6)
        0.0
    """
    mean = F.softmax(logits / tau, dim=1).mean(dim=0)  # (C,)
    return math.log(len(mean)) - torch.special.entr(mean).sum()


def l_replay(logits_a: Tensor, y: Tensor) -> Tensor:
    """Eq. 10: cross-entropy of the joint head on replayed features of old classes, mean over draws.

    Args:
        logits_a: (draws, C) logits of the joint head.
        y: (draws,) class of each draw.
    """
    return F.cross_entropy(logits_a, y)


def l_distill(z_old: Tensor, z: Tensor) -> Tensor:
    """Eq. 11 with a plus sign: mean over nodes of |g^l(i) - g(i)|_2.

    Args:
        z_old: (n, hidden) embeddings before phase 2, without gradient.
        z: (n, hidden) embeddings in training.
    """
    # The norm has no gradient at zero, where training starts; the small constant adds one.
    return ((z_old - z).square().sum(dim=1) + 1e-12).sqrt().mean()


def l_distill_global(z_old: Tensor, z: Tensor) -> Tensor:
    """Eq. 11 as released: |Z^l/|Z^l| - Z/|Z||, each of length 1 as a whole.

    Args:
        z_old: (n, hidden) embeddings before phase 2, without gradient.
        z: (n, hidden) embeddings in training.
    """
    return ((z_old / _length(z_old) - z / _length(z)).square().sum() + 1e-12).sqrt()


def _length(z: Tensor) -> Tensor:
    return z.norm().clamp_min(1e-12)  # z may be 0 everywhere, as after a ReLU


def l_soft_targets(logits: Tensor, logits_old: Tensor, temperature: float) -> Tensor:
    """Learning without forgetting (Li & Hoiem 2016): - sum_c p_ic log p'_ic, mean over nodes.

        p = softmax(logits_old / T) without gradient,  p' = softmax(logits / T)

    Args:
        logits: (n, C) logits of the head in training.
        logits_old: (n, C) logits of the head before.
        temperature: Temperature T.
    """
    p = F.softmax(logits_old.detach() / temperature, dim=1)
    return -(p * F.log_softmax(logits / temperature, dim=1)).sum(dim=1).mean()


def l_self(logits_a: Tensor, y_hat: Tensor) -> Tensor:
    """Eq. 6: cross-entropy of the joint head against pseudo-labels, mean over nodes.

    Args:
        logits_a: (n, C) logits of the joint head.
        y_hat: (n,) pseudo-labels.
    """
    return F.cross_entropy(logits_a, y_hat)


def perturb(z: Tensor, noise: Tensor, eta: float) -> Tensor:
    """Eq. 7: z' = z + eta * sigma_k * noise, sigma_k the spread of dimension k over the nodes.

    Args:
        z: (n, hidden) embeddings.
        noise: (n, hidden) standard normal numbers.
        eta: Size of the perturbation, in standard deviations.
    """
    return z + eta * z.detach().std(dim=0, unbiased=False) * noise


def perturb_logits(logits: Tensor, everywhere: Tensor, noise: Tensor, eta: float) -> Tensor:
    """Eq. 7 as released: noise on h^u's logits, with one spread for all.

    Args:
        logits: (n, C) logits of h^u on the new nodes.
        everywhere: (N, C) logits of h^u on all nodes, for the standard deviation.
        noise: (n, C) standard normal numbers.
        eta: Size of the perturbation, in standard deviations.
    """
    return logits + eta * everywhere.detach().std() * noise


def l_perturb(logits: Tensor, logits_prime: Tensor) -> Tensor:
    """Eq. 8: mean squared difference of the two softmaxes.

    Args:
        logits: (n, C) logits.
        logits_prime: (n, C) logits of perturbed nodes.
    """
    return F.mse_loss(F.softmax(logits, dim=1), F.softmax(logits_prime, dim=1))
