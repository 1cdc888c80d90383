// Loads and stores of elements as vectors of float32 or float64, whole or a row's tail, and the
// conversions of the 16-bit types. Compiled once for each SIMD target.
#if defined(SOFTMAX_CPU_ELEMENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SOFTMAX_CPU_ELEMENTS_INL_H
#undef SOFTMAX_CPU_ELEMENTS_INL_H
#else
#define SOFTMAX_CPU_ELEMENTS_INL_H
#endif

#include <cstring>

#include "core/dtype.h"
#include "hwy/highway.h"

// Targets whose instructions convert float16 exactly: subnormals, NaN, nearest even.
#undef SOFTMAX_NATIVE_F16
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SSE4 || \
    (HWY_ARCH_X86 && HWY_TARGET > HWY_SSE4) || defined(HWY_DISABLE_F16C)
#define SOFTMAX_NATIVE_F16 0
#elif HWY_ARCH_X86 || HWY_ARCH_ARM_A64
#define SOFTMAX_NATIVE_F16 1
#else
#define SOFTMAX_NATIVE_F16 0
#endif

HWY_BEFORE_NAMESPACE();
namespace softmax {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using Lane = hn::TFromD<D>;

// ---- 16-bit bits to float32 and back, in integer arithmetic: see core/dtype.h for the steps ----

template <class D>
HWY_INLINE hn::Vec<D> widen_bf16(D d, hn::Vec<hn::Rebind<std::uint16_t, D>> bits) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
}

// Nearest even, with integer arithmetic: Highway's own conversion truncates. The carry of a NaN's
// payload must not make a number of it.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> narrow_bf16(D, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, v);
  const auto upper = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(upper, hn::Set(du, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))));
  const auto quiet = hn::Or(upper, hn::Set(du, 0x0040u));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
  return hn::TruncateTo(hn::Rebind<std::uint16_t, D>(), hn::IfThenElse(is_nan, quiet, rounded));
}

template <class D>
HWY_INLINE hn::Vec<D> widen_f16(D d, hn::Vec<hn::Rebind<std::uint16_t, D>> bits) {
#if SOFTMAX_NATIVE_F16
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
#else
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto wide = hn::PromoteTo(du, bits);
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(du, 0x8000u)));
  const auto magnitude = hn::And(wide, hn::Set(du, 0x7fffu));
  const auto shifted = hn::ShiftLeft<13>(magnitude);
  const auto normal = hn::Add(shifted, hn::Set(du, 112u << 23));
  const auto special = hn::Or(shifted, hn::Set(du, 0x7f800000u));
  const auto subnormal =
      hn::BitCast(du, hn::Mul(hn::ConvertTo(d, hn::BitCast(di, magnitude)), hn::Set(d, 0x1p-24f)));
  const auto signed_magnitude = hn::BitCast(di, magnitude);
  const auto is_special = hn::RebindMask(du, hn::Gt(signed_magnitude, hn::Set(di, 0x7bff)));
  const auto is_normal = hn::RebindMask(du, hn::Gt(signed_magnitude, hn::Set(di, 0x03ff)));
  const auto value =
      hn::IfThenElse(is_special, special, hn::IfThenElse(is_normal, normal, subnormal));
  return hn::BitCast(d, hn::Or(sign, value));
#endif
}

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> narrow_f16(D d, hn::Vec<D> v) {
#if SOFTMAX_NATIVE_F16
  const hn::Rebind<std::uint16_t, D> d16;
  return hn::BitCast(d16, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v));
#else
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(du, v);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000u));
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
  const auto rebased = hn::Sub(magnitude, hn::Set(du, 112u << 23));
  const auto odd = hn::And(hn::ShiftRight<13>(rebased), hn::Set(du, 1u));
  const auto normal = hn::ShiftRight<13>(hn::Add(rebased, hn::Add(odd, hn::Set(du, 0x0fffu))));
  // Adding 0.5 lets the float32 addition's rounding fall on float16's subnormal step.
  const auto aligned = hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5f));
  const auto subnormal = hn::Sub(hn::BitCast(du, aligned), hn::Set(du, 0x3f000000u));
  const auto signed_magnitude = hn::BitCast(di, magnitude);
  const auto is_nan = hn::RebindMask(du, hn::Gt(signed_magnitude, hn::Set(di, 0x7f800000)));
  const auto is_infinite = hn::RebindMask(du, hn::Gt(signed_magnitude, hn::Set(di, 0x477fefff)));
  const auto is_normal = hn::RebindMask(du, hn::Gt(signed_magnitude, hn::Set(di, 0x387fffff)));
  auto value = hn::IfThenElse(is_normal, normal, subnormal);
  value = hn::IfThenElse(is_infinite, hn::Set(du, 0x7c00u), value);
  value = hn::IfThenElse(is_nan, hn::Set(du, 0x7e00u), value);
  return hn::TruncateTo(hn::Rebind<std::uint16_t, D>(), hn::Or(sign, value));
#endif
}

// ---- one spelling for every element type ----

// The first `count` lanes from memory, 0 in the others; nothing past them is read.
template <class D>
HWY_INLINE hn::Vec<D> load_first(D d, const Lane<D> *p, std::size_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN Lane<D> lanes[hn::MaxLanes(D())] = {};
  std::memcpy(lanes, p, count * sizeof(Lane<D>));
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, count), d, p);
#endif
}

template <class D>
HWY_INLINE void store_first(hn::Vec<D> v, D d, Lane<D> *p, std::size_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN Lane<D> lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  std::memcpy(p, lanes, count * sizeof(Lane<D>));
#else
  hn::BlendedStore(v, hn::FirstN(d, count), d, p);
#endif
}

template <typename X>
struct Elements;  // of a type that is computed in its own precision

template <>
struct Elements<float> {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const float *p) {
    return hn::LoadU(d, p);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const float *p, std::size_t count) {
    return load_first(d, p, count);
  }
  template <class D>
  static HWY_INLINE void store(hn::Vec<D> v, D d, float *p) {
    hn::StoreU(v, d, p);
  }
  template <class D>
  static HWY_INLINE void store(hn::Vec<D> v, D d, float *p, std::size_t count) {
    store_first(v, d, p, count);
  }
};

template <>
struct Elements<double> {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const double *p) {
    return hn::LoadU(d, p);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const double *p, std::size_t count) {
    return load_first(d, p, count);
  }
  template <class D>
  static HWY_INLINE void store(hn::Vec<D> v, D d, double *p) {
    hn::StoreU(v, d, p);
  }
  template <class D>
  static HWY_INLINE void store(hn::Vec<D> v, D d, double *p, std::size_t count) {
    store_first(v, d, p, count);
  }
};

template <>
struct Elements<f16_t> {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const f16_t *p) {
    return widen_f16(d, hn::LoadU(hn::Rebind<std::uint16_t, D>(), &p->bits));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const f16_t *p, std::size_t count) {
    return widen_f16(d, load_first(hn::Rebind<std::uint16_t, D>(), &p->bits, count));
  }
  template <class D>
  static HWY_INLINE void store(hn::Vec<D> v, D d, f16_t *p) {
    hn::StoreU(narrow_f16(d, v), hn::Rebind<std::uint16_t, D>(), &p->bits);
  }
  template <class D>
  static HWY_INLINE void store(hn::Vec<D> v, D d, f16_t *p, std::size_t count) {
    store_first(narrow_f16(d, v), hn::Rebind<std::uint16_t, D>(), &p->bits, count);
  }
};

template <>
struct Elements<bf16_t> {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const bf16_t *p) {
    return widen_bf16(d, hn::LoadU(hn::Rebind<std::uint16_t, D>(), &p->bits));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const bf16_t *p, std::size_t count) {
    return widen_bf16(d, load_first(hn::Rebind<std::uint16_t, D>(), &p->bits, count));
  }
  template <class D>
  static HWY_INLINE void store(hn::Vec<D> v, D d, bf16_t *p) {
    hn::StoreU(narrow_bf16(d, v), hn::Rebind<std::uint16_t, D>(), &p->bits);
  }
  template <class D>
  static HWY_INLINE void store(hn::Vec<D> v, D d, bf16_t *p, std::size_t count) {
    store_first(narrow_bf16(d, v), hn::Rebind<std::uint16_t, D>(), &p->bits, count);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace softmax
HWY_AFTER_NAMESPACE();

#endif  // per target
