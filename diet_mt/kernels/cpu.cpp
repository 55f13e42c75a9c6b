// One step of beam search on a CPU: attention over the tokens that a hypothesis has read, the best
// continuations of a sentence, and products in int8. __init__.py says what each function takes;
// nothing here keeps state.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

// Other compilers and processors get the plain loops: with vectors of 16 bytes, as every x86-64 and
// every 64-bit ARM has.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define DIET_MT_DISPATCH 1
#include <immintrin.h>
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define BYTES 32
namespace avx2 {
namespace singles {
typedef float T;
#include "step.inc"
}
namespace doubles {
typedef double T;
#include "step.inc"
}
namespace int8 {
#include "int8.inc"
}
}  // namespace avx2
#undef BYTES
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,prefer-vector-width=512")
#define BYTES 64
namespace avx512 {
namespace singles {
typedef float T;
#include "step.inc"
}
namespace doubles {
typedef double T;
#include "step.inc"
}
namespace int8 {
#include "int8.inc"
}
}  // namespace avx512
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512vnni,avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,prefer-vector-width=512")
#define VNNI 1
namespace vnni {
namespace int8 {
#include "int8.inc"
}
}  // namespace vnni
#undef VNNI
#undef BYTES
#pragma GCC pop_options
#endif
#define BYTES 16
namespace plain {
namespace singles {
typedef float T;
#include "step.inc"
}
namespace doubles {
typedef double T;
#include "step.inc"
}
namespace int8 {
#include "int8.inc"
}
}  // namespace plain
#undef BYTES

// 0: plain, 1: AVX2, 2: AVX-512, 3: with VNNI; the best that this processor has.
static int64_t best_set() {
#ifdef DIET_MT_DISPATCH
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  return !wide ? 1 : __builtin_cpu_supports("avx512vnni") ? 3 : 2;
#else
  return 0;
#endif
}

static int64_t set = best_set();

#ifdef DIET_MT_DISPATCH
#define RUN(call) (set >= 2 ? avx512::call : set == 1 ? avx2::call : plain::call)
#define RUN_INT8(call) (set == 3 ? vnni::int8::call : RUN(int8::call))
#else
#define RUN(call) plain::call
#define RUN_INT8(call) plain::int8::call
#endif

#define EXPORT extern "C" __attribute__((visibility("default")))

// Takes an instruction set no better than `wanted`, for tests; returns which.
EXPORT int64_t use_set(int64_t wanted) { return set = std::min(wanted, best_set()); }

// The checksum of the sources, as setup.py takes it.
EXPORT int64_t sources() { return SOURCES; }

// `call` points to an Attention or a Candidates of step.inc, or a Product of int8.inc.
EXPORT void attend_float(const void* call) { RUN(singles::attend(call)); }
EXPORT void attend_double(const void* call) { RUN(doubles::attend(call)); }
EXPORT void best_float(const void* call) { RUN(singles::best(call)); }
EXPORT void best_double(const void* call) { RUN(doubles::best(call)); }
EXPORT void multiply_float(const void* call) { RUN_INT8(multiply(call)); }

EXPORT void log_sums_float(const float* x, int64_t rows, int64_t stride, int64_t n, float* out) {
  RUN(singles::log_sums(x, rows, stride, n, out));
}
EXPORT void log_sums_double(const double* x, int64_t rows, int64_t stride, int64_t n, double* out) {
  RUN(doubles::log_sums(x, rows, stride, n, out));
}

// Finds `rows` slots below `capacity` that no hypothesis has read; returns how many there are.
EXPORT int64_t free_slots(const int32_t* slots, int64_t rows, int64_t stride, int64_t length,
                          int64_t capacity, int32_t* out) {
  std::vector<uint8_t> taken(capacity, 0);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t t = 0; t < length; ++t) taken[slots[r * stride + t]] = 1;
  int64_t count = 0;
  for (int64_t slot = 0; slot < capacity && count < rows; ++slot)
    if (!taken[slot]) out[count++] = static_cast<int32_t>(slot);
  return count;
}
