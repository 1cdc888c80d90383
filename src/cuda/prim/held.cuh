// A row, or a warp's part of one, in registers: read once, used twice.
//
// Three ways to hold it, with one interface. Where the output has 16 bits the input does too, and
// its raw words take half the registers of anything else: the coarse exponential is cheap enough to
// take twice. Where registers are many and instructions count, values become terms in place; so do
// they where exponentials are exact, which are taken once.
//
// kIsWindow: packs are those of a window (core/held_window.h), and there may be one more, the tail.
// kKeepsTerms: of 16-bit values. Their packs are elements `step / kCols` apart, of which the warp
// may have the first half alone.
#pragma once

#include "cuda/prim/held_coarse.cuh"
#include "cuda/prim/held_raw.cuh"
#include "cuda/prim/held_terms.cuh"

namespace softmax {

template <typename X, typename Y, int kPacks, bool kIsWindow, bool kKeepsTerms>
using HeldPacks = std::conditional_t<
    sizeof(Y) == 2,
    std::conditional_t<kKeepsTerms, CoarseTermPacks<X, kPacks>, RawPacks<X, kPacks, kIsWindow>>,
    TermPacks<X, kPacks, kIsWindow>>;

}  // namespace softmax
