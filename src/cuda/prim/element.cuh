// The element types on the device: what they accumulate in, how they load and store.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace softmax {

template <typename T>
struct DeviceElement;

template <>
struct DeviceElement<float> {
  using Acc = float;
  static __device__ __forceinline__ float load(float v) { return v; }
  static __device__ __forceinline__ float store(float v) { return v; }
};
template <>
struct DeviceElement<double> {
  using Acc = double;
  static __device__ __forceinline__ double load(double v) { return v; }
  static __device__ __forceinline__ double store(double v) { return v; }
};
template <>
struct DeviceElement<__half> {
  using Acc = float;
  static __device__ __forceinline__ float load(__half v) { return __half2float(v); }
  static __device__ __forceinline__ __half store(float v) { return __float2half_rn(v); }
};
template <>
struct DeviceElement<__nv_bfloat16> {
  using Acc = float;
  static __device__ __forceinline__ float load(__nv_bfloat16 v) { return __bfloat162float(v); }
  static __device__ __forceinline__ __nv_bfloat16 store(float v) { return __float2bfloat16_rn(v); }
};

template <typename X>
using AccOf = typename DeviceElement<X>::Acc;

template <typename X>
__device__ __forceinline__ AccOf<X> load_element(const X *p) {
  return DeviceElement<X>::load(*p);
}

template <typename Y, typename Acc>
__device__ __forceinline__ void store_element(Y *p, Acc value) {
  *p = DeviceElement<Y>::store(value);
}

}  // namespace softmax
