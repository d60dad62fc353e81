// Repeats a body with a compile-time index: Repeat<4>([&](auto i) { ... acc[i] ... }). Register arrays stay in
// registers this way; under `#pragma GCC unroll` compilers keep them in memory. Uses no std:: template: files compiled
// for one ISA must not instantiate code that the linker may share with the others.
#pragma once

namespace rillet {

#define RILLET_INLINE __attribute__((always_inline))

template <int N>
struct Index {
  constexpr operator int() const { return N; }
};

template <int I, int N, class F>
RILLET_INLINE inline void RepeatFrom(const F& f) {
  if constexpr (I < N) {
    f(Index<I>{});
    RepeatFrom<I + 1, N>(f);
  }
}

template <int N, class F>
RILLET_INLINE inline void Repeat(const F& f) {
  RepeatFrom<0, N>(f);
}

}  // namespace rillet
