"""Files that somebody forged, and a child process in which they are read."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import struct
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# What only a program would do that reads more than its file (PEP 578).
_ACTS = ("subprocess", "socket", "ctypes", "shutil", "os.system", "os.exec", "os.spawn", "os.posix")
_ACTS += ("os.fork", "os.mkdir", "os.remove", "os.rename", "os.link", "os.chmod", "os.putenv")


def name(module: str, what: str) -> bytes:
    return f"c{module}\n{what}\n".encode()


def text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(data)) + data


def number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def tuple_of(*values: bytes) -> bytes:
    return b"(" + b"".join(values) + b"t"


def call(function: bytes, *values: bytes) -> bytes:
    return function + tuple_of(*values) + b"R"


def data(value: bytes) -> bytes:
    return call(name("_codecs", "encode"), text(value.decode("latin1")), text("latin1"))


def zipped(path: Path, pickle: bytes, records: Sequence[bytes] = ()) -> Path:
    """A checkpoint of torch's format with any pickle in it."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + pickle)
        archive.writestr("archive/byteorder", "little")
        for number, record in enumerate(records):
            archive.writestr(f"archive/data/{number}", record)
        archive.writestr("archive/version", "3\n")
    return path


def in_child(act: Callable[[Any], str], cases: Sequence[Any], seconds: int = 10) -> list[str]:
    """What ``act`` returns for each case, or how the process ended; and what it should not do.

    A case that ends its process is followed by the next one in another.
    """
    actual: list[str] = []
    while len(actual) < len(cases):
        ours, theirs = multiprocessing.Pipe(duplex=False)
        child = os.fork()
        if not child:
            _work(act, cases[len(actual) :], theirs, seconds)
        theirs.close()
        try:
            while True:
                actual.append(ours.recv())
        except EOFError:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if len(actual) < len(cases):
                actual.append(f"ended with {status}")
    return actual


def _work(act: Callable[[Any], str], cases: Sequence[Any], to: Any, seconds: int) -> None:
    deeds: list[str] = []

    def watch(event: str, args: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
        if writes or event.startswith(_ACTS):
            deeds.append(f"{event} {args}")

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # torch's warnings of protocols
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # nor does it wait for a function written in C
    sys.addaudithook(watch)
    for case in cases:
        deeds.clear()
        signal.setitimer(signal.ITIMER_PROF, seconds)  # of the CPU, which others may use
        signal.alarm(20 * seconds)
        try:
            outcome = act(case)
        except BaseException as error:  # as a fuzzer, whatever it is
            outcome = f"{type(error).__name__}: {error}"
        to.send(" ".join([outcome, *deeds]))
    os._exit(0)


# The vocabulary of the random pickles: names that may stand in one, and what they are given.
NAMES = [
    *(name("collections", "OrderedDict"), name("argparse", "Namespace"), name("builtins", "set")),
    *(name("numpy", "dtype"), name("numpy", "ndarray"), name("_codecs", "encode")),
    *(name(f"numpy.{core}.multiarray", "scalar") for core in ("core", "_core")),
    *(name(f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")),
    *(name("torch._utils", f"_rebuild_{what}") for what in ("tensor_v2", "parameter")),
    *(name("torch", f"{what}Storage") for what in ("Float", "Long", "Half", "Bool")),
    *(name("torch", "Size"), name("torch._utils", "_rebuild_sparse_tensor")),
]
VALUES = [
    *(b"N", b"\x88", b"\x89", b")", b"]", b"}", number(0), number(1), number(-1), number(1 << 30)),
    *(
        text(word)
        for word in ("f8", "O", "i4", "V8", "<", "|", "storage", "0", "1", "cpu", "latin1")
    ),
    *(
        text(word)
        for word in ("__class__", "__dict__", "_metadata", "real", "cfg", "model", "\ud800")
    ),
    *(data(b"b"), data(struct.pack("<Q", 0x4141414141414140)), b"G" + struct.pack(">d", 1.5)),
    tuple_of(number(3), text("<"), b"N", b"N", b"N", number(-1), number(-1), number(0)),
    tuple_of(text("storage"), name("torch", "FloatStorage"), text("0"), text("cpu"), number(4))
    + b"Q",
]
STEPS = [b"(", b"t", b"\x85", b"\x86", b"\x87", b"R", b"\x81", b"b", b"a", b"e", b"s", b"u", b"Q"]
MEMO = [code + bytes([place]) for code in (b"q", b"h") for place in range(4)]


def random_pickle(seed: int) -> bytes:
    """Operations over these names in any order."""
    chance = random.Random(seed)
    parts = chance.choices(NAMES + VALUES + STEPS + MEMO, k=chance.randint(1, 30))
    return b"}" + text("cfg") + b"".join(parts) + chance.choice([b"s.", b"."])


def random_objects(seed: int) -> bytes:
    """What is allowed, called as it should be, but for some of the arguments and states."""
    made = _Maker(random.Random(seed))
    values = [made.one_of(made.KINDS) for _ in range(made.chance.randint(1, 4))]
    walked = [call(name("builtins", "set"), each) for each in values]
    return b"}" + text("cfg") + tuple_of(*(walked if seed % 2 else values)) + b"s."


class _Maker:
    KINDS = ("dtype", "array", "raw_array", "scalar", "tensor", "options", "table")

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.depth = 0

    def one_of(self, kinds: Sequence[str]) -> bytes:
        made: bytes = getattr(self, self.chance.choice(kinds))()
        return made

    def wrong(self, right: bytes) -> bytes:
        """A value, now and then another one."""
        if self.depth > 4 or self.chance.random() > 0.06:
            return right
        self.depth += 1
        made = self.one_of(self.KINDS) if self.chance.random() < 0.5 else self.chance.choice(VALUES)
        self.depth -= 1
        return tuple_of(made, tuple_of(number(1))) if self.chance.random() < 0.3 else made

    def built(self, of: bytes, args: Sequence[bytes], state: Sequence[bytes] = ()) -> bytes:
        made = of + tuple_of(*map(self.wrong, args)) + (b"\x81" if self.wrong(b"") else b"R")
        return made + tuple_of(*map(self.wrong, state)) + b"b" if state else made

    def dtype(self) -> bytes:
        kind = self.chance.choice(["f8", "f8", "i4", "O", "V8", "U2", "M8"])
        # Within a number, another type: a pointer, where numpy itself builds it.
        pointer = tuple_of(call(name("numpy", "dtype"), text("O")), tuple_of(number(1)))
        inside = pointer if self.chance.random() < 0.3 else b"N"
        state = [number(3), text("<"), inside, b"N", b"N", number(-1), number(-1), number(0)]
        return self.built(name("numpy", "dtype"), [text(kind), b"\x89", b"\x88"], state)

    def data(self) -> bytes:
        return data(struct.pack("<Q", 0x4141414141414140) * self.chance.randint(0, 2))

    def array(self) -> bytes:
        size = tuple_of(number(self.chance.choice([1, 1, 1, 0, -1, 1 << 30])))
        empty = [name("numpy", "ndarray"), tuple_of(number(0)), data(b"b")]
        state = [number(1), size, self.dtype(), b"\x89", self.data()]
        return self.built(name("numpy.core.multiarray", "_reconstruct"), empty, state)

    def raw_array(self) -> bytes:
        return self.built(name("numpy", "ndarray"), [b")", self.dtype(), self.data()])

    def scalar(self) -> bytes:
        function = name("numpy.core.multiarray", "scalar")
        return self.built(function, [self.dtype(), self.data()])

    def tensor(self) -> bytes:
        sizes = [0, 1, 2, 4, 1 << 30]
        size, stride = (tuple_of(number(self.chance.choice(sizes))) for _ in range(2))
        numbers = number(self.chance.choice(sizes))
        kind = name("torch", self.chance.choice(["Float", "Half", "Long", "Bool"]) + "Storage")
        place = tuple_of(text("storage"), self.wrong(kind), text("0"), text("cpu"), numbers) + b"Q"
        args = [place, number(self.chance.choice(sizes)), size, stride, b"\x89", self.table()]
        return self.built(name("torch._utils", "_rebuild_tensor_v2"), args)

    def options(self) -> bytes:
        return call(name("argparse", "Namespace")) + self.state()

    def table(self) -> bytes:
        made = call(name("collections", "OrderedDict"))
        return made + self.state() if self.chance.random() < 0.5 else made

    def state(self) -> bytes:
        names = ("__class__", "__dict__", "__setstate__", "_metadata", "real", "items", "keys", "a")
        items = (text(self.chance.choice(names)) + self.wrong(self.scalar()) for _ in range(2))
        filled = b"}(" + b"".join(items) + b"u"
        return (tuple_of(filled, filled) if self.chance.random() < 0.5 else filled) + b"b"


def mutated(original: bytes, seed: int) -> bytes:
    """With some bytes changed, inserted from the vocabulary, or left out."""
    chance = random.Random(seed)
    changed = bytearray(original)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed))
        kind = chance.randrange(4)
        if kind == 0:
            changed[at] = chance.randrange(256)
        elif kind == 1:
            changed[at:at] = chance.choice(NAMES + VALUES + STEPS + MEMO)
        elif kind == 2:
            del changed[at : at + chance.randint(1, 8)]
        else:
            other = chance.randrange(len(changed))
            changed[at : at + 8] = changed[other : other + 8]
    return bytes(changed)
