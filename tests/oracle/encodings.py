"""What each encoding changes inside attention, one logit and one vector at a time.

Sources: DIET, Chen et al. 2021 (arXiv:2104.08698), equations 1, 3 and 4; Shaw et al. 2018
(arXiv:1803.02155), equations 3 and 4; T5, Raffel et al. 2019 (arXiv:1910.10683), section 2.1; TUPE,
Ke et al. 2020 (arXiv:2006.15595), equations 7 to 10; RoFormer, Su et al. 2021 (arXiv:2104.09864),
equation 34; ALiBi, Press et al. 2021 (arXiv:2108.12409), section 3; Linformer, Wang et al. 2020
(arXiv:2006.04768), equation 7; KERPLE, Chi et al. 2022 (arXiv:2205.09921), section 4; Sandwich,
Chi et al. 2022 (arXiv:2212.10356); FIRE, Li et al. 2023 (arXiv:2310.04418), section 3;
DeBERTa, He et al. 2020 (arXiv:2006.03654), equation 4, as its code has it; Transformer-XL, Dai et
al. 2019 (arXiv:1901.02860), section 3.3; Marian, src/layers_new/alibi.cu; PoPE, Gopalakrishnan
et al. 2025 (arXiv:2509.10534).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Tables = Mapping[str, Array]
Vector = list[float]


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    total = 0.0
    for a, b in zip(one, other, strict=True):
        total += a * b
    return total


def plus(one: Sequence[float], other: Sequence[float]) -> Vector:
    return [a + b for a, b in zip(one, other, strict=True)]


@dataclass(frozen=True, eq=False)
class Setting:
    """One layer of one kind of attention: ``encoder``, ``decoder`` or ``cross``.

    ``keys``: n_S, the number of positions that tables provide for keys. ``tables``: the raw
    parameters of all layers. ``options``: numbers such as ``position_buckets``. ``first_is_cls``:
    position 0 stands for the whole sentence. ``content``: the projections of the attention.
    """

    kind: str
    layer: int
    heads: int
    head_dim: int
    keys: int
    sharing: str | None
    tables: Tables
    options: Mapping[str, Any]
    first_is_cls: bool = False
    content: Tables = field(default_factory=dict)

    def table(self, name: str, h: int, *, part: str = "", sharing: str | None = None) -> Array:
        """The table called ``name`` of this layer and of one head (DIET, section 4.4)."""
        mode = sharing or self.sharing
        if mode == "layer-wise":
            return self.tables[f"{part}shared.{name}"][h]
        by_head = self.tables[f"{part}layers.{self.layer}.{name}"]
        return by_head[0] if mode == "head-wise" else by_head[h]


class Encoding:
    """Changes nothing: logits q_i . k_j / sqrt(D), values v_j."""

    divided_by = 1  # further divisor under the root of q . k

    def __init__(self, setting: Setting) -> None:
        self.at = setting

    @property
    def mixed_to(self) -> int:
        """k, where keys and values are mixed; otherwise 0."""
        return 0

    def query(self, h: int, i: int, q: Vector) -> Vector:
        """q_i of head h."""
        return q

    def key(self, h: int, i: int, j: int, k: Vector) -> Vector:
        """k_j as query i meets it."""
        return k

    def product(self, h: int, i: int, j: int, q: Vector, k: Vector) -> float:
        """What is scaled: q_i as the keys meet it, times k_j as it meets it."""
        return dot(q, self.key(h, i, j, k))

    def value(self, h: int, i: int, j: int, v: Vector) -> Vector:
        """v_j as query i gets it."""
        return v

    def logit(self, h: int, i: int, j: int) -> float:
        """What is added to the logit, unscaled."""
        return 0.0

    def mixed(self, name: str, h: int, vectors: dict[int, Vector]) -> dict[int, Vector]:
        """All keys or values that may be seen -> those that take their place."""
        raise AssertionError("nothing is mixed")


class DietRel(Encoding):
    """R[i - j]. Offsets run from -(n_S - 1), in column 0, to n_T - 1."""

    def logit(self, h: int, i: int, j: int) -> float:
        return float(self.at.table("by_offset", h)[(i - j) + (self.at.keys - 1)])


class DietAbs(Encoding):
    """(P_Q P_K^T)[i, j]."""

    part = ""

    def logit(self, h: int, i: int, j: int) -> float:
        of_query = self.at.table("query", h, part=self.part)[i].tolist()
        return dot(of_query, self.at.table("key", h, part=self.part)[j].tolist())


class Shaw(Encoding):
    """q_i . (k_j + a^K[clip(j - i)]), v_j + a^V[clip(j - i)]."""

    def vector(self, name: str, h: int, i: int, j: int) -> Vector:
        clip = self.at.options["position_clip"]
        distance = min(max(j - i, -clip), clip)
        row: Vector = self.at.table(name, h)[clip + distance].tolist()
        return row

    def key(self, h: int, i: int, j: int, k: Vector) -> Vector:
        return plus(k, self.vector("of_keys", h, i, j))

    def value(self, h: int, i: int, j: int, v: Vector) -> Vector:
        if not self.at.options["position_values"]:
            return v
        return plus(v, self.vector("of_values", h, i, j))


def bucket(distance: int, buckets: int, longest: int, causal: bool) -> int:
    """The bin of ``distance`` j - i: one each for the near ones, then a geometric series of edges
    up to ``longest``.
    """
    first, away = 0, -distance
    if causal:
        away = max(away, 0)
    else:
        buckets //= 2
        if distance > 0:
            first, away = buckets, distance
    near = buckets // 2
    if away < near:
        return first + away
    number = near
    for far in range(1, buckets - near):
        if away >= near * (longest / near) ** (far / (buckets - near)):
            number = near + far
    return first + number


class T5(Encoding):
    """b[bucket(j - i)]."""

    part = ""

    def logit(self, h: int, i: int, j: int) -> float:
        number = bucket(
            j - i,
            self.at.options["position_buckets"],
            self.at.options["position_max_distance"],
            causal=self.at.kind == "decoder",
        )
        return float(self.at.table("by_bucket", h, part=self.part)[number])


class TupeAbs(Encoding):
    """q_i . k_j / sqrt(2 D) + (LN(p_i) U_Q) . (LN(p_j) U_K) / sqrt(2 D).

    Where position 0 is [CLS], theta_1 for all that it looks at, and theta_2 for all others that
    look at it: the same of p_n with itself, and of p_(n+1), two vectors behind the n positions.
    """

    divided_by = 2

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.projected = cache(self._projected)

    def logit(self, h: int, i: int, j: int) -> float:
        if self.at.first_is_cls and 0 in (i, j):
            i = j = self.at.keys + (0 if i == 0 else 1)
            return self.tied(h, i, j)
        return self.tied(h, i, j) + self.relative(h, i, j)

    def relative(self, h: int, i: int, j: int) -> float:
        """What TUPE-R adds."""
        return 0.0

    def tied(self, h: int, i: int, j: int) -> float:
        keys = "sources" if self.at.kind == "cross" else "positions"
        both = dot(self.projected("positions", i, "query", h), self.projected(keys, j, "key", h))
        return both / math.sqrt(2 * self.at.head_dim)

    def _projected(self, table: str, position: int, name: str, h: int) -> Vector:
        row = self.normed(table, position)
        matrix = self.at.table(name, h)  # (E, D)
        return [dot(row, matrix[:, c].tolist()) for c in range(self.at.head_dim)]

    def normed(self, table: str, position: int) -> Vector:
        """Layer norm of one row (Ba et al. 2016); 1e-5 is torch's."""
        row = self.at.tables[f"{table}.weight"][position].tolist()
        scale = self.at.tables[f"{table}.norm.weight"].tolist()
        shift = self.at.tables[f"{table}.norm.bias"].tolist()
        mean = math.fsum(row) / len(row)
        variance = math.fsum((x - mean) ** 2 for x in row) / len(row)
        return [
            (x - mean) / math.sqrt(variance + 1e-5) * a + b
            for x, a, b in zip(row, scale, shift, strict=True)
        ]


class TupeRel(TupeAbs):
    """The same plus b[bucket(j - i)]."""

    class Relative(T5):
        part = "relative."

    def relative(self, h: int, i: int, j: int) -> float:
        return self.Relative(self.at).logit(h, i, j)


class Rotary(Encoding):
    """Columns (2c, 2c+1) of q and k as complex numbers, times e^(i position b^(-2c/D)); with a
    fraction f, those of the first D = f D columns. "dynamic" multiplies b by what fits the tokens
    up to this one.
    """

    def turned(self, position: int, vector: Vector) -> Vector:
        if self.at.kind == "cross":
            return vector
        options = self.at.options
        width = int(len(vector) * (options.get("position_fraction") or 1.0))
        base = options.get("position_base") or 10000.0
        if options.get("position_trained_length"):
            s, length = options["position_scaling_factor"], options["position_trained_length"]
            if position + 1 > length and width > 2:
                base *= (s * (position + 1) / length - (s - 1)) ** (width / (width - 2))
        result: Vector = []
        for c in range(0, width, 2):
            angle = position * base ** (-c / width)
            number = complex(vector[c], vector[c + 1])
            number *= complex(math.cos(angle), math.sin(angle))
            result += [number.real, number.imag]
        return result + vector[width:]

    def query(self, h: int, i: int, q: Vector) -> Vector:
        return self.turned(i, q)

    def key(self, h: int, i: int, j: int, k: Vector) -> Vector:
        return self.turned(j, k)


class Pope(Encoding):
    """The sum over columns of ln(1 + e^q) ln(1 + e^k) cos((j - i) 10000^(-c/D) + delta_c), delta
    being at least -2 pi and at most 0.
    """

    def product(self, h: int, i: int, j: int, q: Vector, k: Vector) -> float:
        if self.at.kind == "cross":
            return dot(q, k)
        total = 0.0
        for c, (x, y, delta) in enumerate(zip(q, k, self.at.table("phase", h), strict=True)):
            phase = max(min(float(delta), 0.0), -2 * math.pi)
            angle = (j - i) * 10000.0 ** (-c / len(q)) + phase
            total += math.log(1 + math.exp(x)) * math.log(1 + math.exp(y)) * math.cos(angle)
        return total


def slopes(heads: int) -> list[float]:
    """2^(-8/H), its square, and so on for a power of two; otherwise those of the power below, then
    every second one of the power above.
    """
    power = 1
    while power * 2 <= heads:
        power *= 2
    rates = [2.0 ** (-8.0 * n / power) for n in range(1, power + 1)]
    if power < heads:
        rates += slopes(2 * power)[::2][: heads - power]
    return rates


class Alibi(Encoding):
    """-m_h |i - j| in self-attention; with trained slopes m_h |j - i + b_h|, as Marian has it."""

    def logit(self, h: int, i: int, j: int) -> float:
        if self.at.options.get("position_trained_slopes"):
            slope, offset = (float(self.at.table(name, h)[0]) for name in ("slope", "offset"))
            return slope * abs(j - i + offset)
        return 0.0 if self.at.kind == "cross" else -slopes(self.at.heads)[h] * abs(i - j)


class Kerple(Encoding):
    """-r1 log(1 + r2 |i - j|) or -r1 |i - j|^r2 in self-attention; r1 = e^a and r2 = e^b, or
    2 / (1 + e^-b), of what is stored.
    """

    def logit(self, h: int, i: int, j: int) -> float:
        if self.at.kind == "cross":
            return 0.0
        a, b = (float(self.at.table(name, h)[0]) for name in ("raw_r1", "raw_r2"))
        if self.at.options.get("position_kernel") == "power":
            return -math.exp(a) * abs(i - j) ** (2.0 / (1.0 + math.exp(-b)))
        return -math.exp(a) * math.log(1.0 + math.exp(b) * abs(i - j))


class Sandwich(Encoding):
    """p_i . p_j / (8 h / H) in self-attention, less p_i . p_i; sinusoids of 128 columns."""

    def logit(self, h: int, i: int, j: int) -> float:
        if self.at.kind == "cross":
            return 0.0
        total = 0.0
        for c in range(64):
            speed = 10000.0 ** (-2 * c / 128)
            total += math.sin(i * speed) * math.sin(j * speed)
            total += math.cos(i * speed) * math.cos(j * speed) - 1.0
        return total / (8.0 * (h + 1) / self.at.heads)


class Fire(Encoding):
    """f(psi(i - j) / psi(max(L, i, j))), psi(x) = log(c x + 1) and psi(-x) = -psi(x)."""

    def logit(self, h: int, i: int, j: int) -> float:
        c, threshold = (abs(float(self.at.table(name, 0)[0])) for name in ("c", "threshold"))
        longest = max(512.0 * threshold, i, j)
        x = math.log(c * abs(i - j) + 1.0) / (math.log(c * longest + 1.0) + 1e-6)
        x = -x if i < j else x
        weight, bias = (self.at.table(f"hidden_{name}", 0).tolist() for name in ("weight", "bias"))
        hidden = [max(0.0, w * x + b) for w, b in zip(weight, bias, strict=True)]
        return dot(hidden, self.at.table("out", h).tolist())


class Deberta(Encoding):
    """q_i . k_j + q_i . (P W_k)[d] + k_j . (P W_q)[d], d = i - j + k within 0 and 2k - 1, over
    sqrt(3 D); in self-attention. With buckets, i - j is that of its bucket, and k their number.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.divided_by = 1 if setting.kind == "cross" else 3

    def product(self, h: int, i: int, j: int, q: Vector, k: Vector) -> float:
        total = dot(q, k)
        if self.at.kind == "cross":
            return total
        row = self.row(i - j)
        for of_key, of_query, x, y in zip(*self.projected(h, row), q, k, strict=True):
            total += x * of_key + y * of_query
        return total

    def row(self, distance: int) -> Vector:
        """P[d]."""
        size = clip = self.at.options["position_clip"]
        if buckets := self.at.options.get("position_buckets"):
            size, near, away = buckets, buckets // 2, abs(distance)
            if away > near:  # edges are a geometric series from near to clip - 1
                ratio = ((clip - 1) / near) ** (1 / (near - 1))
                number = near
                while near * ratio ** (number - near) < away * (1 - 1e-12):
                    number += 1
                distance = number if distance > 0 else -number
        row: Vector = self.at.tables["relative"][
            min(max(distance + size, 0), 2 * size - 1)
        ].tolist()
        return row

    def projected(self, h: int, row: Vector) -> tuple[Vector, Vector]:
        """P[d] W_k and P[d] W_q; of shared projections with their biases."""
        size = self.at.head_dim
        if not self.at.options.get("position_shared_projections"):
            columns = (self.at.table(name, h).T.tolist() for name in ("key", "query"))
            of_keys, of_queries = ([dot(row, column) for column in each] for each in columns)
            return of_keys, of_queries
        of_keys, of_queries = (
            [
                float(self.at.content[f"{name}_proj.bias"][c])
                + dot(row, self.at.content[f"{name}_proj.weight"][c].tolist())
                for c in range(h * size, (h + 1) * size)
            ]
            for name in ("k", "q")
        )
        return of_keys, of_queries


class TransformerXl(Encoding):
    """(q_i + u) . k_j + (q_i + v) . (R[i - j] W) over sqrt(D); R[d] has the sines, then the cosines
    of d / 10000^(2c/E).
    """

    def product(self, h: int, i: int, j: int, q: Vector, k: Vector) -> float:
        width = self.at.heads * self.at.head_dim
        angles = [(i - j) / 10000.0 ** (2 * c / width) for c in range(width // 2)]
        row = [*map(math.sin, angles), *map(math.cos, angles)]
        u, v = (self.at.tables[name][h].tolist() for name in ("content", "position"))
        of_key = [dot(row, column) for column in self.at.table("key", h).T.tolist()]
        return dot(plus(q, u), k) + dot(plus(q, v), of_key)


class Linformer(Encoding):
    """(E K)_j and (F V)_j for j of k mixed ones, in the encoder alone."""

    @property
    def mixed_to(self) -> int:
        return int(self.at.options["linformer_k"]) if self.at.kind == "encoder" else 0

    def mixed(self, name: str, h: int, vectors: dict[int, Vector]) -> dict[int, Vector]:
        shares = self.at.table(name, h, sharing=self.mixing)
        result = {}
        for m in range(self.mixed_to):
            sums = [0.0] * self.at.head_dim
            for j, vector in vectors.items():
                sums = plus(sums, [float(shares[j, m]) * x for x in vector])
            result[m] = sums
        return result

    @property
    def mixing(self) -> str | None:
        """How E and F are shared: as asked for."""
        return self.at.sharing


class DietAbsLin(Linformer):
    """The same, E and F by layer, plus (P_Q P_K^T)[i, j] for the mixed j; elsewhere DIET-ABS."""

    class Mixed(DietAbs):
        part = "mixed."

    def logit(self, h: int, i: int, j: int) -> float:
        equations = self.Mixed if self.at.kind == "encoder" else DietAbs
        return equations(self.at).logit(h, i, j)

    @property
    def mixing(self) -> str | None:
        return "head-wise"


def with_logit(term: Callable[[Setting, int, int, int], float]) -> type[Encoding]:
    """Equations that add ``term(setting, h, i, j)`` to the logit."""

    class WithLogit(Encoding):
        def logit(self, h: int, i: int, j: int) -> float:
            return term(self.at, h, i, j)

    return WithLogit


# What is added to column c of the token embedding at a position, in a stack of ``width``: sinusoids
# of Vaswani et al. 2017 (arXiv:1706.03762), section 3.5; learned vectors of Devlin et al. 2018
# (arXiv:1810.04805), section 3.
Input = Callable[[Tables, int, int, int], float]


def no_input(tables: Tables, position: int, c: int, width: int) -> float:
    """Nothing is added to the embeddings."""
    assert not tables
    return 0.0


def sinusoid(tables: Tables, position: float, c: int, width: int) -> float:
    """Sines in the first half of the columns, cosines in the second.

    Wavelengths from 2 pi to 10000 * 2 pi, both included, as in Tensor2Tensor.
    """
    assert not tables
    half = width // 2
    wave = c if c < half else c - half
    angle = position / 10000.0 ** (wave / (half - 1))
    return math.sin(angle) if c < half else math.cos(angle)


def learned_row(tables: Tables, position: int, c: int, width: int) -> float:
    """P[position, c], in the last columns where P has fewer: there the words have none."""
    row = tables["weight"][position]
    first = width - len(row)
    return float(row[c - first]) if c >= first else 0.0


def segment_logit(
    setting: Setting, segments: Sequence[Sequence[int]]
) -> Callable[[int, int, int, int], float]:
    """Chen et al. 2021, equation 2: (b, h, i, j) -> E_S[S(i), S(j)]; ``segments`` by sentence and
    position.
    """

    def logit(b: int, h: int, i: int, j: int) -> float:
        return float(setting.table("weight", h)[segments[b][i]][segments[b][j]])

    return logit


def segment_row(tables: Tables, segment: int, c: int) -> float:
    """Devlin et al. 2018, section 3: added to column c of the embedding of a token."""
    return float(tables["weight"][segment][c])
