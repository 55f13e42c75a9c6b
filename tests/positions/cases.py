"""One row for each encoding: its equations, hand values and properties, for the tests of all rooms.

A new encoding is entered in CASES, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..oracle import encodings as equations
from ..oracle.encodings import Encoding, Input, learned_row, no_input, sinusoid

ENCODER, DECODER, CROSS = KINDS = ("encoder", "decoder", "cross")
SELF = (ENCODER, DECODER)

# Sizes of the models of tests/toy.py: layers, heads, head size, width, longest sentence.
L_ENC, H_ENC, D_ENC, E_ENC, N_S = 2, 3, 4, 12, 11
L_DEC, H_DEC, D_DEC, E_DEC, N_T = 3, 2, 8, 16, 10
CLIP, BUCKETS, K = 2, 8, 3  # their options

Numbers = Callable[[str | None], int]
Rows = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Hand:
    """Values computed by hand: ``logits`` by head (H, T, S), or ``rows`` (n, E) at the input.

    Parameters by name are ``tables``, without "layers.0." in front. All queries are ``q``, keys
    ``k`` or by position ``k``. ``longest``: positions of the tables, where not T and S.
    """

    logits: Sequence[Rows] = ()
    rows: Rows = ()
    tables: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    kind: str = ENCODER
    head_dim: int = 1
    q: float = 0.0
    k: float | Sequence[float] = 0.0
    longest: int | None = None
    tolerance: float = 1e-12


@dataclass(frozen=True)
class Case:
    """Expectations of one encoding.

    ``equations`` inside attention and ``input_row`` at the input, as loops; ``numbers`` of
    parameters in the toy models, by sharing; ``sharing``: the paper's. ``options``: defaults by
    field; ``toy``: options of the toy models, small enough for short sentences to reach them.
    ``shift``: whether shifting all positions changes self-attention. ``limited``: whether positions
    end with the tables. ``at_zero``: why tables of zeros are not "no positions". ``initial``:
    standard deviations of parameters, with E for the width and D for the head size. ``of``: the
    encoding of which it is a form.
    """

    equations: type[Encoding] = Encoding
    input_row: Input = no_input
    numbers: Numbers = lambda _: 0
    acts_in: tuple[str, ...] = KINDS
    sharing: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    toy: dict[str, Any] = field(default_factory=dict)
    shift: bool = False
    limited: bool = False
    at_zero: str = ""
    initial: dict[str, Callable[[int, int], float]] = field(default_factory=dict)
    hand: tuple[Hand, ...] = ()
    of: str = ""


def tables(layers: int, heads: int, sharing: str | None) -> int:
    """How many (layer, head) pairs have a table of their own."""
    return {"none": layers * heads, "head-wise": layers, "layer-wise": heads}[sharing or ""]


def in_logits(sharing: str | None, encoder: int, decoder: int, cross: int) -> int:
    """Total for so many numbers per table of each kind."""
    of_decoder = tables(L_DEC, H_DEC, sharing)
    return tables(L_ENC, H_ENC, sharing) * encoder + of_decoder * (decoder + cross)


LEARNED = N_S * E_ENC + N_T * E_DEC


def tupe(mode: str | None) -> int:
    """U_Q and U_K, and p with a layer norm for each place where positions are counted."""
    vectors = (N_S + 2) * E_ENC + (N_T + 2) * E_DEC + (N_T + 2 + N_S + 2) * E_DEC
    of_encoder, of_decoder = 2 * E_ENC * D_ENC, 2 * E_DEC * D_DEC
    return vectors + in_logits(mode, of_encoder, of_decoder, of_decoder)


def fire(mode: str | None) -> int:
    """32 hidden units, c and L for each network, 32 weights for each of its heads."""
    networks = 3 if mode == "layer-wise" else L_ENC + 2 * L_DEC
    return networks * (2 * 32 + 2) + in_logits(mode, 32, 32, 32)


def linformer(mode: str | None) -> int:
    """E and F in the encoder, vectors at the input of both stacks."""
    return tables(L_ENC, H_ENC, mode) * 2 * N_S * K + LEARNED


def diet_abs_lin(mode: str | None) -> int:
    """In the encoder E and F by layer, and factors for n queries and k keys."""
    in_encoder = L_ENC * 2 * N_S * K + tables(L_ENC, H_ENC, mode) * (N_S + K) * D_ENC
    return in_encoder + in_logits(mode, 0, 2 * N_T * D_DEC, (N_T + N_S) * D_DEC)


def fixed(std: float) -> Callable[[int, int], float]:
    return lambda width, head_dim: std


def toeplitz(values: dict[int, float], queries: int, keys: int) -> Rows:
    """Rows of queries i, columns of keys j: the value of i - j."""
    return [[values[i - j] for j in range(keys)] for i in range(queries)]


def even(function: Callable[[int], float], length: int) -> Rows:
    """A value by distance |i - j|."""
    return [[function(abs(i - j)) for j in range(length)] for i in range(length)]


def unit(value: float) -> Rows:
    """The first of FIRE's 32 hidden units, the others at 0."""
    return [[value, *[0.0] * 31]]


BERT = fixed(0.02)
# Width 4: sin i, sin i/10000, cos i, cos i/10000.
SINUSOIDS = Hand(
    rows=[
        [0.0, 0.0, 1.0, 1.0],
        [0.84147098, 0.00010000, 0.54030231, 1.0],
        [0.90929743, 0.00020000, -0.41614684, 0.99999998],
    ],
    tolerance=1e-7,
)
# Options of rotary, for sentences of the toy models.
DYNAMIC = {
    "position_scaling": "dynamic",
    "position_scaling_factor": 2.0,
    "position_trained_length": 3,
}
SLOWER = (0, 1 / 100, 2 / 250)  # angles of positions 0, 1 and 2
PSI = [math.log(1 + d) / math.log(4) for d in range(3)]  # FIRE's with c = 1 and L = 3
# sum over c < 64 of cos(d / 10000^(c/64)) - 1 for d = 0, 1 and 2.
SANDWICH = (0.0, -1.9063161942, -6.6181394472)

CASES: dict[str, Case] = {
    "none": Case(acts_in=()),
    "sinusoidal": Case(
        input_row=sinusoid, acts_in=(), shift=True, limited=True, hand=(SINUSOIDS,),
        at_zero="sines and cosines are no parameters",
    ),
    "shape": Case(
        input_row=sinusoid, acts_in=(), shift=True, limited=True, hand=(SINUSOIDS,),
        options={"shift": 500}, toy={"position_shift": 0},
        at_zero="sines and cosines are no parameters",
    ),
    "cape": Case(
        input_row=sinusoid, acts_in=(), shift=True, limited=True, hand=(SINUSOIDS,),
        options={"global_shift": 5.0, "local_shift": 0.5, "global_scale": 1.03},
        toy={"position_global_shift": 0.0, "position_local_shift": 0.0,
             "position_global_scale": 1.0},
        at_zero="sines and cosines are no parameters",
    ),
    "learned": Case(
        input_row=learned_row, acts_in=(), numbers=lambda _: LEARNED, shift=True, limited=True,
        initial={"weight": lambda width, _: width**-0.5},
        hand=(Hand(rows=[[1.0, 2], [3, 4]], tables={"weight": [[1.0, 2], [3, 4]]}),),
    ),
    "concat": Case(
        input_row=learned_row, acts_in=(), shift=True, limited=True,
        numbers=lambda _: N_S * (E_ENC // 8) + N_T * (E_DEC // 8),
        options={"rank": None},
        # Words are drawn with (E-R)^-0.5 and scaled by sqrt(E) at the input: near 1.
        initial={"weight": fixed(1.0)},
        hand=(
            Hand(
                rows=[[0.0, 0, 1, 2], [0, 0, 3, 4], [0, 0, 5, 6]], options={"rank": 2},
                tables={"weight": [[1.0, 2], [3, 4], [5, 6]]},
            ),
        ),
    ),
    "shaw": Case(
        equations=equations.Shaw,
        # Keys and values, a vector for each of 2c + 1 distances.
        numbers=lambda mode: 2 * (2 * CLIP + 1) * in_logits(mode, D_ENC, D_DEC, D_DEC),
        sharing="head-wise",  # one set of vectors per layer for all heads (section 3.3)
        options={"clip": 16, "values": False},
        toy={"position_clip": CLIP, "position_values": True},
        # Glorot and Bengio's for a matrix of 2c + 1 rows and D columns.
        initial={"of_keys": lambda _, d: (2 / (33 + d)) ** 0.5},
        hand=(
            Hand(
                logits=[[[20.0, 30, 30], [10, 20, 30], [10, 10, 20]]], options={"clip": 1}, q=1.0,
                tables={"of_keys": [[[10.0], [20], [30]]]},
            ),
        ),
    ),
    "t5": Case(
        equations=equations.T5,
        numbers=lambda mode: in_logits(mode, BUCKETS, BUCKETS, BUCKETS),
        sharing="layer-wise",  # one table for all layers (section 2.1)
        options={"buckets": 32, "max_distance": 128},
        toy={"position_buckets": BUCKETS, "position_max_distance": 6},
        initial={"by_bucket": BERT},
        hand=(
            # Buckets: 0 for the query itself, 1 before it, 3 behind it.
            Hand(
                logits=[[[10.0, 40, 40], [20, 10, 40], [20, 20, 10]]],
                options={"buckets": 4, "max_distance": 3},
                tables={"by_bucket": [[10.0, 20, 30, 40]]},
            ),
            # One direction: distances 0, 1, 2 and, beyond, 3; later keys have the bucket of 0.
            Hand(
                logits=[[[10.0, 10, 10, 10], [20, 10, 10, 10], [30, 20, 10, 10], [40, 30, 20, 10]]],
                options={"buckets": 4, "max_distance": 3}, kind=DECODER,
                tables={"by_bucket": [[10.0, 20, 30, 40]]},
            ),
        ),
    ),
    "tupe-abs": Case(
        equations=equations.TupeAbs, numbers=tupe, shift=True, limited=True,
        sharing="layer-wise",  # U_Q and U_K shared by the layers (section 3.2)
        at_zero="q . k is divided by sqrt(2 D)",
        initial={"positions.weight": BERT, "query": BERT, "key": BERT},
        hand=(
            # The norm makes (-1, 1) of (1, 3), and (1, -1) of (5, 1). p U_Q is (2, 2) and (-2, -2),
            # p U_K (-1, 3) and (1, -3): products 4 and -4, over sqrt(4). The tolerance is the
            # norm's epsilon, 1e-5 against variances of 1 and 4.
            Hand(
                logits=[[[2.0, -2], [-2, 2]]], head_dim=2, tolerance=3e-5,
                tables={"positions.weight": [[1.0, 3], [5, 1]],
                        "query": [[[1.0, 2], [3, 4]]], "key": [[[1.0, 0], [0, 3]]]},
            ),
        ),
    ),
    "tupe-rel": Case(
        equations=equations.TupeRel, shift=True, limited=True, sharing="layer-wise",
        numbers=lambda mode: tupe(mode) + in_logits(mode, BUCKETS, BUCKETS, BUCKETS),
        options={"buckets": 32, "max_distance": 128},
        toy={"position_buckets": BUCKETS, "position_max_distance": 6},
        at_zero="q . k is divided by sqrt(2 D)",
    ),
    "rotary": Case(
        equations=equations.Rotary, acts_in=SELF, at_zero="angles are no parameters",
        options=dict.fromkeys(
            ("base", "fraction", "scaling", "scaling_factor", "trained_length", "pair_factors")
        ),
        # Angles are the distance and a hundredth of it.
        hand=(
            Hand(
                logits=[even(lambda d: 2 * math.cos(d) + 2 * math.cos(d / 100), 3)], head_dim=4,
                q=1.0, k=1.0,
            ),
            # A base of 100 has the second at a tenth; half of the columns are one pair, which has
            # the fastest frequency.
            Hand(
                logits=[even(lambda d: 2 * math.cos(d) + 2 * math.cos(d / 10), 3)], head_dim=4,
                q=1.0, k=1.0, options={"base": 100.0},
            ),
            Hand(
                logits=[even(lambda d: 2 * math.cos(d) + 2, 3)], head_dim=4, q=1.0, k=1.0,
                options={"fraction": 0.5},
            ),
            # Nothing changes up to 2 tokens. A third makes 3/2 of the length, and the second pair
            # slower by 3 times 3/2 less 2, which is 5/2.
            Hand(
                logits=[
                    [[2 * math.cos(i - j) + 2 * math.cos(a - b) for j, b in enumerate(SLOWER)]
                     for i, a in enumerate(SLOWER)],
                ],
                head_dim=4, q=1.0, k=1.0,
                options={"scaling": "dynamic", "scaling_factor": 3.0, "trained_length": 2},
            ),
        ),
    ),
    "pope": Case(
        equations=equations.Pope, acts_in=SELF, sharing="none",  # PoPE-pytorch: for each head
        numbers=lambda mode: in_logits(mode, D_ENC, D_DEC, 0),
        at_zero="angles are no parameters, and words have none",
        initial={"phase": fixed(0)},
        # softplus(0) is ln 2, each column turns ten times more slowly than the one before; phases
        # of 0.7 and -9 are clamped to 0 and -2 pi.
        hand=(
            Hand(
                logits=[
                    toeplitz(
                        {d: math.log(2) ** 2 * sum(math.cos(p - d * 10.0**-c)
                                                   for c, p in enumerate((0, 0, -0.5, -0.5)))
                         for d in range(-2, 3)}, 3, 3,
                    )
                ],
                head_dim=4, tables={"phase": [[0.7, -9.0, -0.5, -0.5]]},
            ),
        ),
    ),
    "alibi": Case(
        equations=equations.Alibi, acts_in=SELF, at_zero="slopes are no parameters",
        options={"trained_slopes": None},
        hand=(
            Hand(logits=[even(lambda d: -d / 16, 3), even(lambda d: -d / 256, 3)]),
            # -2 |j - i + 1| and -1 |j - i - 2|.
            Hand(
                logits=[
                    toeplitz({-2: -6, -1: -4, 0: -2, 1: 0, 2: -2}, 3, 3),
                    toeplitz({-2: 0, -1: -1, 0: -2, 1: -3, 2: -4}, 3, 3),
                ],
                options={"trained_slopes": True},
                tables={"shared.slope": [[-2.0], [-1.0]], "shared.offset": [[1.0], [-2.0]]},
            ),
            Hand(
                logits=[toeplitz({-2: -0.225, -1: -0.125, 0: -0.025, 1: -0.075}, 2, 3)],
                options={"trained_slopes": True}, kind=CROSS,
                tables={"shared.slope": [[-0.1]], "shared.offset": [[0.25]]},
            ),
        ),
    ),
    "kerple": Case(
        equations=equations.Kerple, acts_in=SELF, sharing="none",  # for each head (section 4)
        numbers=lambda mode: in_logits(mode, 2, 2, 0),
        options={"kernel": "log"}, at_zero="rates are exponentials of the parameters",
        hand=(
            Hand(
                logits=[even((0.0, -2.772588722239781, -3.8918202981106265).__getitem__, 3)],
                tables={"raw_r1": [[math.log(2)]], "raw_r2": [[math.log(3)]]},
            ),
            Hand(
                logits=[even((0.0, -2.0, -5.656854249492381).__getitem__, 3)],  # -2 d^1.5
                options={"kernel": "power"},
                tables={"raw_r1": [[math.log(2)]], "raw_r2": [[-math.log(2 / 1.5 - 1)]]},
            ),
        ),
    ),
    "sandwich": Case(
        equations=equations.Sandwich, acts_in=SELF, at_zero="sines and cosines are no parameters",
        # Compression 4 and 8.
        hand=(
            Hand(
                logits=[even(lambda d, c=c: SANDWICH[d] / c, 3) for c in (4, 8)], tolerance=1e-7
            ),
        ),
    ),
    "fire": Case(  # relative up to the length L
        equations=equations.Fire, numbers=fire,
        sharing="none",  # a function for each layer; FIRE-S shares it (section 3)
        hand=(
            # f(x) = 2 max(x + 1, 0), c = 1, L = 3; 1e-6 is added to the normalizer.
            Hand(
                logits=[[[2, 2 - 2 * PSI[1], 2 - 2 * PSI[2]], [2 + 2 * PSI[1], 2, 2 - 2 * PSI[1]]]],
                tables={"hidden_weight": unit(1), "hidden_bias": unit(1), "out": unit(2),
                        "c": [[1.0]], "threshold": [[3 / 512]]},
                tolerance=1e-5,
            ),
        ),
    ),
    "transformer-xl": Case(
        equations=equations.TransformerXl,
        sharing="none",  # W_R for each layer (section 3.3)
        # W_R, and u and v of each kind of attention.
        numbers=lambda mode: (
            in_logits(mode, E_ENC * D_ENC, E_DEC * D_DEC, E_DEC * D_DEC) + 2 * (E_ENC + 2 * E_DEC)
        ),
        initial={"key": BERT, "content": BERT, "position": BERT},
        # (1.5, 1) . (1, 1), and (1, 2) . (sin d, cos d), the identity being W_R.
        hand=(
            Hand(
                logits=[
                    toeplitz(
                        {d: 2.5 + math.sin(d) + 2 * math.cos(d) for d in range(-3, 2)}, 2, 4
                    )
                ],
                kind=CROSS, head_dim=2, q=1.0, k=1.0,
                tables={"key": [[[1.0, 0], [0, 1]]], "content": [[0.5, 0]], "position": [[0.0, 1]]},
            ),
        ),
    ),
    "deberta": Case(
        equations=equations.Deberta, acts_in=SELF, sharing="none",  # for each layer (section 3.1)
        # P of 2k rows in both stacks, W_q,r and W_k,r.
        numbers=lambda mode: (
            2 * 3 * (E_ENC + E_DEC) + in_logits(mode, 2 * E_ENC * D_ENC, 2 * E_DEC * D_DEC, 0)
        ),
        options={"clip": 512, "buckets": None, "shared_projections": None},
        toy={"position_clip": 3}, at_zero="q . k is divided by sqrt(3 D)",
        initial={"relative": BERT, "query": BERT, "key": BERT},
        # k = 2: rows 0, 1, 2 and 3 for i - j of -2 and less, -1, 0, and 1 and more; once for the
        # query and once for the key.
        hand=(
            Hand(
                logits=[toeplitz({-3: 21, -2: 21, -1: 23, 0: 25, 1: 27, 2: 27, 3: 27}, 4, 4)],
                options={"clip": 2}, q=1.0, k=1.0,
                tables={"relative": [[10.0], [11], [12], [13]],
                        "query": [[[1.0]]], "key": [[[1.0]]]},
            ),
            # Buckets 0 to 2, 3 up to the distance 5, then 4, in rows 0 to 7 from -4 to 3 and more.
            Hand(
                logits=[
                    toeplitz(
                        {-6: 21, -5: 23, -4: 23, -3: 23, -2: 25, -1: 27, 0: 29,
                         1: 31, 2: 33, 3: 35, 4: 35, 5: 35, 6: 35}, 7, 7,
                    )
                ],
                options={"clip": 6, "buckets": 4}, q=1.0, k=1.0,
                tables={"relative": [[10.0], [11], [12], [13], [14], [15], [16], [17]],
                        "query": [[[1.0]]], "key": [[[1.0]]]},
            ),
        ),
    ),
    "diet-abs": Case(
        equations=equations.DietAbs, shift=True, limited=True,
        # Two factors of n r.
        numbers=lambda mode: in_logits(
            mode, 2 * N_S * D_ENC, 2 * N_T * D_DEC, (N_T + N_S) * D_DEC
        ),
        sharing="layer-wise",  # sharing helps (table 6)
        options={"rank": None}, initial={"query": BERT, "key": BERT},
        hand=(
            Hand(
                logits=[[[1.0, 2, 4, 5], [3, 0, 6, -3], [0, -1, -1, -3], [2, 1, 5, 1]]],
                options={"rank": 2},
                tables={"query": [[[1.0, 2], [3, 0], [0, -1], [2, 1]]],
                        "key": [[[1.0, 0], [0, 1], [2, 1], [-1, 3]]]},
            ),
        ),
    ),
    "diet-rel": Case(
        equations=equations.DietRel, limited=True,
        # 2n - 1 distances, n_T + n_S - 1 in cross-attention.
        numbers=lambda mode: in_logits(mode, 2 * N_S - 1, 2 * N_T - 1, N_T + N_S - 1),
        sharing="none",  # sharing hurts (table 9)
        initial={"by_offset": fixed(0)},
        hand=(
            # R[-3] .. R[3] = 70, 60, 50, 40, 3, 2, 1: rows are queries i, columns keys j, R[i - j].
            Hand(
                logits=[[[40.0, 50, 60, 70], [3, 40, 50, 60], [2, 3, 40, 50], [1, 2, 3, 40]]],
                tables={"by_offset": [[70.0, 60, 50, 40, 3, 2, 1]]},
            ),
            # Two target and three source positions: R[-2] .. R[1] = 30, 20, 10, 5.
            Hand(
                logits=[[[10.0, 20, 30], [5, 10, 20]]], kind=CROSS,
                tables={"by_offset": [[30.0, 20, 10, 5]]},
            ),
        ),
    ),
    "linformer": Case(
        equations=equations.Linformer, input_row=learned_row, numbers=linformer, shift=True,
        limited=True, acts_in=(ENCODER,),
        sharing="head-wise",  # one pair of E and F per layer (section 4, "headwise sharing")
        options={"projected": 32}, toy={"linformer_k": K},
        at_zero="E and F at 0 leave neither keys nor values",
        initial={"of_keys": fixed(32**-0.5), "of_values": fixed(32**-0.5)},
        # The first mixture is the sum of three keys, the second takes the last from the first.
        hand=(
            Hand(
                logits=[[[60.0, -20]] * 3], options={"projected": 2}, q=1.0, k=(10, 20, 30),
                tables={"of_keys": [[[1.0, 1], [1, 0], [1, -1]]]}, longest=3,
            ),
        ),
    ),
    "diet-abs-lin": Case(
        equations=equations.DietAbsLin, numbers=diet_abs_lin, shift=True, limited=True,
        sharing="layer-wise", options={"rank": None, "projected": 32}, toy={"linformer_k": K},
        at_zero="E and F at 0 leave neither keys nor values",
        initial={"query": BERT, "key": BERT},
        hand=(
            Hand(
                logits=[[[1.0, 2, 4], [3, 0, 6]]], options={"rank": 2, "projected": 3}, longest=2,
                tables={"mixed.layers.0.query": [[[1.0, 2], [3, 0]]],
                        "mixed.layers.0.key": [[[1.0, 0], [0, 1], [2, 1]]]},
            ),
        ),
    ),
}  # fmt: skip

# Forms of encodings with other parameters, by their options; tests of whole models run them like
# encodings.
FORMS: dict[str, Case] = {
    "alibi-trained": Case(
        of="alibi",
        equations=equations.Alibi,
        sharing="layer-wise",  # one mask for the layers of a stack
        numbers=lambda mode: in_logits(mode, 2, 2, 2),
        toy={"position_trained_slopes": True},
    ),
    "deberta-v3": Case(
        of="deberta",
        equations=equations.Deberta,
        acts_in=SELF,
        numbers=lambda _: 2 * 4 * (E_ENC + E_DEC),
        toy={"position_clip": 6, "position_buckets": 4, "position_shared_projections": True},
        at_zero="q . k is divided by sqrt(3 D)",
    ),
}
ALL = CASES | FORMS
