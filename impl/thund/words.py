"""What the kernel files are made with: numba's decorators, and machine operations it has no name for.

Words at an address, wide sums, prefetch. Any integer argument of a kernel has 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba as nb
import numba.extending
from llvmlite import ir
from numba import types
from numba.core.caching import FunctionCache
from numpy.typing import NDArray

Array = NDArray[Any]
Scalar = Any
"""A number as compiled code sees it, or a tuple of them."""

_Compile = Callable[[Callable[..., Any]], Any]

intrinsic: _Compile = numba.extending.intrinsic
part: _Compile = nb.njit(nogil=True)
"""A function that only compiled code calls."""
inline: _Compile = nb.njit(nogil=True, inline="always")
rare: _Compile = nb.njit(nogil=True, inline="never")


@lru_cache(1)
def _sources() -> str:
    """A checksum of all kernel files."""
    here = Path(__file__)
    files = sorted(here.parent.glob("kernel*.py"))
    return sha256(b"".join(path.read_bytes() for path in [here, *files])).hexdigest()


class _Cache(FunctionCache):  # type: ignore[misc]
    """numba's disk cache, where each entry also stands for the kernel files it was made from.

    numba itself looks at the file of the function alone, and would go on with code that another
    file has inlined, or with a constant that has changed there.
    """

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        key: tuple[Any, ...] = super()._index_key(signature, codegen)  # type: ignore[no-untyped-call]
        return (*key, _sources())


def jit(function: Callable[..., Any]) -> Any:
    """Compile at the first call, and keep the code on disk, if there is a place for it."""
    compiled: Any = nb.njit(nogil=True)(function)
    with suppress(RuntimeError):
        compiled._cache = _Cache(function)  # type: ignore[no-untyped-call] # noqa: SLF001 - there is no other way
    return compiled


_I8, _I32, _I64, _I128, _I192 = (ir.IntType(n) for n in (8, 32, 64, 128, 192))


def _loader(name: str, result: Any, kind: Any) -> Any:
    def load(typingctx: Any, base: Any, i: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], kind.as_pointer())
            return builder.load(builder.gep(pointer, [args[1]]), align=1)

        return result(types.uint64, types.uint64), generate

    load.__name__ = load.__qualname__ = name
    return intrinsic(load)


word_at = _loader("word_at", types.int64, _I64)
int_at = _loader("int_at", types.int32, _I32)
byte_at = _loader("byte_at", types.uint8, _I8)


@intrinsic
def put_word(typingctx: Any, where: Any, word: Any) -> Any:
    """Store eight bytes at an address, aligned or not."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[1], builder.inttoptr(args[0], _I64.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.int64), generate


@intrinsic
def mix(typingctx: Any, x: Any, y: Any) -> Any:
    """Both halves of the 128-bit product, xored: every bit of x reaches every bit of the result."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        product = builder.mul(builder.zext(args[0], _I128), builder.zext(args[1], _I128))
        high = builder.lshr(product, ir.Constant(_I128, 64))
        return builder.xor(builder.trunc(product, _I64), builder.trunc(high, _I64))

    return types.uint64(types.uint64, types.uint64), generate


def _place(context: Any, builder: Any, kind: Any, array: Any, i: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [i])


@intrinsic
def address_of(typingctx: Any, array: Any) -> Any:
    """The address of an array's first element."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, _I64)

    return types.uint64(array), generate


@intrinsic
def prefetch(typingctx: Any, array: Any, i: Any) -> Any:
    """Ask for the cache line of array[i]; nothing waits for it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.bitcast(
            _place(context, builder, signature.args[0], args[0], args[1]), _I8.as_pointer()
        )
        kind = ir.FunctionType(ir.VoidType(), [place.type, _I32, _I32, _I32])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(hint, [place, *(ir.Constant(_I32, v) for v in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


def _add(context: Any, builder: Any, signature: Any, args: Any, value: Any) -> Any:
    place = _place(context, builder, signature.args[0], args[0], args[1])
    pointer = builder.bitcast(place, value.type.as_pointer())
    builder.store(builder.add(builder.load(pointer, align=8), value), pointer, align=8)
    return context.get_dummy_value()


@intrinsic
def add_128(typingctx: Any, array: Any, i: Any, x: Any) -> Any:
    """Add x to the 128-bit integer that words i and i + 1 hold, low word first."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.sext(args[2], _I128)
        return _add(context, builder, signature, args, value)

    return types.void(array, types.uint64, types.int64), generate


@intrinsic
def add_192(typingctx: Any, array: Any, i: Any, x: Any, shift: Any) -> Any:
    """Add x * 2**shift, shift from 0 to 63, to the 192-bit integer in words i to i + 2.

    The halves are made apart: a shift of 128 bits takes three times as long.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, shift = args[2], args[3]
        back = builder.xor(shift, ir.Constant(_I64, 63))
        high = builder.ashr(builder.ashr(x, back), ir.Constant(_I64, 1))
        low = builder.zext(builder.shl(x, shift), _I192)
        upper = builder.shl(builder.sext(high, _I192), ir.Constant(_I192, 64))
        return _add(context, builder, signature, args, builder.or_(upper, low))

    return types.void(array, types.uint64, types.int64, types.uint64), generate
