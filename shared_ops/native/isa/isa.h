// Which instruction set the kernels use: the best this CPU has, or the one RILLET_ISA (or a test) asks for.
// Same bytes whichever it is: DESIGN section 4.
#pragma once

namespace rillet {

enum class Isa : int { kScalar = 0, kAvx2, kAvx512, kAvx512Vnni, kNeon, kNeonDot };
constexpr int kIsaCount = 6;

const char* NameOf(Isa isa);
// True where this build has code for `isa` and this CPU can run it.
bool IsAvailable(Isa isa);
// What kernels prepared from now on will use. Set by SetIsa, else by RILLET_ISA, else the best available.
Isa CurrentIsa();
// Returns false, and changes nothing, where `isa` is not available.
bool SetIsa(Isa isa);

// One implementation of a family of inner loops for each ISA; null where that ISA has none of its own (or this build
// lacks it). A family lists what it has: `const IsaTable<GemmF32> kTable = {&scalar::kGemm, RILLET_AVX2(&avx2::kGemm),
// ...}`.
template <class T>
struct IsaTable {
  const T* scalar;
  const T* avx2 = nullptr;
  const T* avx512 = nullptr;
  const T* avx512vnni = nullptr;
  const T* neon = nullptr;
  const T* neondot = nullptr;

  const T& Current() const {
    switch (CurrentIsa()) {
      case Isa::kAvx512Vnni:
        if (avx512vnni) return *avx512vnni;
        [[fallthrough]];
      case Isa::kAvx512:
        if (avx512) return *avx512;
        [[fallthrough]];
      case Isa::kAvx2: return avx2 ? *avx2 : *scalar;
      case Isa::kNeonDot:
        if (neondot) return *neondot;
        [[fallthrough]];
      case Isa::kNeon: return neon ? *neon : *scalar;
      case Isa::kScalar: break;
    }
    return *scalar;
  }
};

// `RILLET_HAVE_<ISA>` is defined by the build where the compiler has that ISA; these keep tables free of #ifdefs.
#ifdef RILLET_HAVE_AVX2
#define RILLET_AVX2(x) x
#else
#define RILLET_AVX2(x) nullptr
#endif
#ifdef RILLET_HAVE_AVX512
#define RILLET_AVX512(x) x
#else
#define RILLET_AVX512(x) nullptr
#endif
#ifdef RILLET_HAVE_AVX512VNNI
#define RILLET_AVX512VNNI(x) x
#else
#define RILLET_AVX512VNNI(x) nullptr
#endif
#ifdef RILLET_HAVE_NEON
#define RILLET_NEON(x) x
#else
#define RILLET_NEON(x) nullptr
#endif
#ifdef RILLET_HAVE_NEONDOT
#define RILLET_NEONDOT(x) x
#else
#define RILLET_NEONDOT(x) nullptr
#endif

}  // namespace rillet
