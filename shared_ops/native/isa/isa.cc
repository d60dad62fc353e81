#include "isa.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#ifdef __aarch64__
#include <sys/auxv.h>
#endif

namespace rillet {
namespace {

constexpr const char* kNames[kIsaCount] = {"scalar", "avx2", "avx512", "avx512vnni", "neon", "neondot"};

bool CpuHas(Isa isa) {
#if defined(RILLET_EMULATE_AVX512)
  return isa == Isa::kAvx2 || isa == Isa::kAvx512 || isa == Isa::kAvx512Vnni;
#elif defined(__x86_64__)
  switch (isa) {
    case Isa::kAvx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    case Isa::kAvx512Vnni: return CpuHas(Isa::kAvx512) && __builtin_cpu_supports("avx512vnni");
    default: return false;
  }
#elif defined(__aarch64__)
  constexpr unsigned long kHwcapAsimdDp = 1ul << 20;
  return isa == Isa::kNeon || (isa == Isa::kNeonDot && (getauxval(AT_HWCAP) & kHwcapAsimdDp));
#else
  (void)isa;
  return false;
#endif
}

bool BuildHas(Isa isa) {
  constexpr const void* kHere = "";
  const void* const built[kIsaCount] = {kHere,
                                        RILLET_AVX2(kHere),
                                        RILLET_AVX512(kHere),
                                        RILLET_AVX512VNNI(kHere),
                                        RILLET_NEON(kHere),
                                        RILLET_NEONDOT(kHere)};
  return built[static_cast<int>(isa)] != nullptr;
}

Isa Best() {
  if (const char* wanted = std::getenv("RILLET_ISA"))
    for (int i = 0; i < kIsaCount; ++i)
      if (!std::strcmp(wanted, kNames[i]) && IsAvailable(static_cast<Isa>(i))) return static_cast<Isa>(i);
  for (int i = kIsaCount - 1; i > 0; --i)
    if (IsAvailable(static_cast<Isa>(i))) return static_cast<Isa>(i);
  return Isa::kScalar;
}

std::atomic<int> g_isa{-1};

}  // namespace

const char* NameOf(Isa isa) { return kNames[static_cast<int>(isa)]; }

bool IsAvailable(Isa isa) { return isa == Isa::kScalar || (BuildHas(isa) && CpuHas(isa)); }

Isa CurrentIsa() {
  int isa = g_isa.load(std::memory_order_relaxed);
  if (isa < 0) g_isa.store(isa = static_cast<int>(Best()), std::memory_order_relaxed);
  return static_cast<Isa>(isa);
}

bool SetIsa(Isa isa) {
  if (!IsAvailable(isa)) return false;
  g_isa.store(static_cast<int>(isa), std::memory_order_relaxed);
  return true;
}

}  // namespace rillet
