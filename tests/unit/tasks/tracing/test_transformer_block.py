"""How a block with attention divides, for blocks of many shapes."""

import torch
from torch import nn

from tasks.tracing import trace
from tests.unit.tasks.tracing.small_nets import Net

WIDTH = 4


class Attention(nn.Module):
    """One head with projections of its own, and whatever else is given by name."""

    def __init__(self, **more):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(WIDTH, WIDTH) for _ in range(4)
        )
        for name, part in more.items():
            setattr(self, name, part)

    def forward(self, x, memory=None):
        memory = x if memory is None else memory
        q, k, v = self.q_proj(x), self.k_proj(memory), self.v_proj(memory)
        if hasattr(self, "q_norm"):
            q, k = self.q_norm(q), self.k_norm(k)
        scores = q @ k.transpose(1, 2)
        if hasattr(self, "logit_scale"):
            scores = scores * self.logit_scale.exp()
        if hasattr(self, "rel_pos_bias"):
            scores = scores + self.rel_pos_bias
        return self.o_proj(scores.softmax(-1) @ v)


def layer_of(steps, **parts):
    """The layer of every module and tensor of a block, without the path of the block."""
    net = Net(
        lambda net, x: net.head(net.blocks[0](net.base(x))),
        base=nn.Linear(WIDTH, WIDTH),
        blocks=nn.ModuleList([Net(steps, **parts)]),
        head=nn.Linear(WIDTH, 2),
    )
    layout = trace(net, torch.rand(2, 3, WIDTH), "net")
    assert layout.names[0] == "base"
    assert layout.names[-1] == "head"
    found = {}
    for name, layer in layout.layer_of.items():
        if name.startswith("blocks.0."):
            owner = name.removeprefix("blocks.0.").removesuffix(".weight").removesuffix(".bias")
            found[owner] = layer.removeprefix("blocks.0.")
    return found


def norm():
    return nn.LayerNorm(WIDTH)


def mlp():
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.GELU(), nn.Linear(8, WIDTH))


PROJECTIONS = {
    "attn.q_proj": "attn.qk",
    "attn.k_proj": "attn.qk",
    "attn.v_proj": "attn.v",
    "attn.o_proj": "attn.out",
}
MLP = {"mlp.0": "mlp", "mlp.2": "mlp"}


def test_norms_first():
    def steps(net, x):
        x = x + net.attn(net.one(x))
        return x + net.mlp(net.two(x))

    # The names and the order of registration say nothing.
    found = layer_of(steps, two=norm(), mlp=mlp(), attn=Attention(), one=norm())
    assert found == PROJECTIONS | MLP | {"one": "attn.v", "two": "mlp"}


def test_norms_last():
    def steps(net, x):
        x = net.one(x + net.attn(x))
        return net.two(x + net.mlp(x))

    found = layer_of(steps, attn=Attention(), mlp=mlp(), one=norm(), two=norm())
    assert found == PROJECTIONS | MLP | {"one": "attn.out", "two": "mlp"}


def test_norms_around():
    def steps(net, x):
        x = x + net.after(net.attn(net.before(x)))
        return x + net.last(net.mlp(net.middle(x)))

    found = layer_of(
        steps, attn=Attention(), mlp=mlp(), before=norm(), after=norm(), middle=norm(), last=norm()
    )
    own = {"before": "attn.v", "after": "attn.out", "middle": "mlp", "last": "mlp"}
    assert found == PROJECTIONS | MLP | own


def test_one_norm_for_parallel_branches_feeds_the_attention():
    def steps(net, x):
        normed = net.norm(x)
        return x + net.attn(normed) + net.mlp(normed)

    found = layer_of(steps, attn=Attention(), mlp=mlp(), norm=norm())
    assert found == PROJECTIONS | MLP | {"norm": "attn.v"}


def test_scales_follow_what_they_scale():
    def steps(net, x):
        x = x + net.gamma1 * net.attn(net.norm1(x))
        return x * net.residual + net.gamma2 * net.mlp(net.norm2(x))

    scales = {name: nn.Parameter(torch.ones(WIDTH)) for name in ("gamma1", "gamma2", "residual")}
    found = layer_of(steps, attn=Attention(), mlp=mlp(), norm1=norm(), norm2=norm(), **scales)
    own = {"norm1": "attn.v", "gamma1": "attn.out", "residual": "attn.out"}
    assert found == PROJECTIONS | MLP | own | {"norm2": "mlp", "gamma2": "mlp"}


def test_a_scale_before_the_attention_stands_with_what_feeds_it():
    def steps(net, x):
        x = net.residual * x + net.attn(net.norm1(x))
        return x + net.mlp(net.norm2(x))

    found = layer_of(
        steps,
        attn=Attention(),
        mlp=mlp(),
        norm1=norm(),
        norm2=norm(),
        residual=nn.Parameter(torch.ones(WIDTH)),
    )
    assert found == PROJECTIONS | MLP | {"norm1": "attn.v", "norm2": "mlp", "residual": "attn.v"}


def test_a_convolution_before_the_attention_is_a_layer_of_its_own():
    def steps(net, x):
        x = x + net.position(x)
        x = x + net.attn(net.norm1(x))
        return x + net.mlp(net.norm2(x))

    found = layer_of(
        steps,
        position=nn.Linear(WIDTH, WIDTH),
        attn=Attention(),
        mlp=mlp(),
        norm1=norm(),
        norm2=norm(),
    )
    assert found == PROJECTIONS | MLP | {"position": "pre", "norm1": "attn.v", "norm2": "mlp"}


def test_two_attentions_are_divided_each():
    def steps(net, x):
        x = x + net.attn(net.norm1(x))
        x = x + net.cross(net.norm2(x), x.flip(1))
        return x + net.mlp(net.norm3(x))

    norms = {f"norm{at}": norm() for at in (1, 2, 3)}
    found = layer_of(steps, attn=Attention(), cross=Attention(), mlp=mlp(), **norms)
    cross = {
        name.replace("attn", "cross"): to.replace("attn", "cross")
        for name, to in PROJECTIONS.items()
    }
    own = {"norm1": "attn.v", "norm2": "cross.v", "norm3": "mlp"}
    assert found == PROJECTIONS | cross | MLP | own


def test_all_that_shapes_the_attention_weights_belongs_to_the_kernel():
    def steps(net, x):
        x = x + net.attn(net.norm1(x))
        return x + net.mlp(net.norm2(x))

    attention = Attention(
        q_norm=norm(),
        k_norm=norm(),
        logit_scale=nn.Parameter(torch.zeros(())),
        rel_pos_bias=nn.Parameter(torch.zeros(3, 3)),
    )
    found = layer_of(steps, attn=attention, mlp=mlp(), norm1=norm(), norm2=norm())
    names = ("q_norm", "k_norm", "logit_scale", "rel_pos_bias")
    kernel = {f"attn.{name}": "attn.qk" for name in names}
    assert found == PROJECTIONS | MLP | kernel | {"norm1": "attn.v", "norm2": "mlp"}
