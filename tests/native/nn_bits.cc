// Runs every loop of nn_f32.h of one instruction set over sizes around its vectors, and prints a hash of the results:
// equal output is equal bytes. NaNs count as one value. Compiled by test_nn_isas.py with RILLET_ISA defined.
#include <cstdio>
#include <cstring>
#include <vector>

#include "nn_f32.h"

namespace rillet {
namespace RILLET_ISA {
extern const NnF32 kNnF32;
}
}  // namespace rillet

namespace {

using rillet::NnF32;
const NnF32& loops = rillet::RILLET_ISA::kNnF32;
constexpr int64_t kSizes[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 63, 64};

struct Hash {
  uint64_t h = 14695981039346656037ull;
  void Add(const float* values, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      uint32_t bits;
      std::memcpy(&bits, &values[i], 4);
      if (values[i] != values[i]) bits = 0x7fc00000;
      h = (h ^ bits) * 1099511628211ull;
    }
  }
  void Print(const char* name) const { std::printf("%s %016llx\n", name, static_cast<unsigned long long>(h)); }
};

// Numbers of mixed size and sign, the same on every machine. Exact: 16 bits each.
std::vector<float> Numbers(uint32_t seed, int64_t n, float scale) {
  std::vector<float> x(static_cast<size_t>(n));  // exact: the address sanitizer sees what is read behind it
  for (float& v : x) {
    seed = seed * 1664525u + 1013904223u;
    v = static_cast<float>(static_cast<int32_t>(seed >> 16) - 32768) * scale;
  }
  return x;
}

// The numbers of one round, for rows of n elements.
struct Data {
  std::vector<float> x, y, z, out, other;
  explicit Data(int64_t n)
      : x(Numbers(1, n * 40, 0x1p-13f)),
        y(Numbers(2, n * 40, 0x1p-14f)),
        z(Numbers(3, n * 40, 0x1p-15f)),
        out(x.size()),
        other(x.size()) {
    for (float& v : z) v = v < 0 ? 0.5f - v : 0.5f + v;  // positive: scales
  }
};

template <class F>
void ForSizes(const char* name, const F& f) {
  Hash hash;
  for (const int64_t n : kSizes) {
    Data d(n);
    f(n, d, &hash);
  }
  hash.Print(name);
}

void Rows() {
  for (int k = 0; k < rillet::kRowReductions; ++k)
    ForSizes("row", [k](int64_t n, Data& d, Hash* h) {
      const float r = loops.row[k](d.x.data(), n * 11);
      h->Add(&r, 1);
    });
  ForSizes("log_sum_exp", [](int64_t n, Data& d, Hash* h) {
    const float r = loops.log_sum_exp(d.x.data(), n);
    h->Add(&r, 1);
  });
  const auto map = [](const char* name, void (*f)(const float*, int64_t, float*)) {
    ForSizes(name, [f](int64_t n, Data& d, Hash* h) {
      f(d.x.data(), n, d.out.data());
      h->Add(d.out.data(), n);
    });
  };
  map("softmax", loops.softmax);
  map("log_softmax", loops.log_softmax);
}

void Columns() {
  for (int k = 0; k < rillet::kColumnReductions; ++k)
    ForSizes("columns", [k](int64_t n, Data& d, Hash* h) {
      std::vector<float> acc(rillet::kReduceLanes * rillet::kColumnBlock);
      const std::vector<float> x(d.x.begin(), d.x.begin() + 37 * n), y(d.y.begin(), d.y.begin() + 37 * n);
      const rillet::Columns m{x.data(), y.data(), d.y.data(), d.z.data(), 37, n};
      loops.columns[k](m, 0, n, 0, 8, acc.data());
      loops.columns[k](m, 0, n, 8, 16, acc.data());
      loops.join[k](acc.data(), n, d.out.data());
      h->Add(d.out.data(), n);
    });
  ForSizes("column_affine", [](int64_t n, Data& d, Hash* h) {
    loops.column_affine({d.y.data(), d.z.data(), d.x.data(), n}, d.x.data(), 5, d.out.data());
    h->Add(d.out.data(), 5 * n);
  });
  ForSizes("column_grad", [](int64_t n, Data& d, Hash* h) {
    loops.column_grad({d.y.data(), d.z.data(), d.x.data(), d.y.data(), d.z.data(), n}, d.x.data(), d.y.data(), 5,
                      d.out.data());
    h->Add(d.out.data(), 5 * n);
  });
}

void Losses() {
  ForSizes("cross_entropy", [](int64_t n, Data& d, Hash* h) {
    const float loss = loops.cross_entropy(d.x.data(), d.z.data(), n, d.out.data());
    h->Add(&loss, 1);
    h->Add(d.out.data(), n);
  });
  ForSizes("sparse_cross_entropy", [](int64_t n, Data& d, Hash* h) {
    const float loss = loops.sparse_cross_entropy(d.x.data(), n / 2, n, d.out.data());
    h->Add(&loss, 1);
    h->Add(d.out.data(), n);
  });
  ForSizes("sigmoid_cross_entropy", [](int64_t n, Data& d, Hash* h) {
    loops.sigmoid_cross_entropy(d.x.data(), d.z.data(), n, d.out.data());
    h->Add(d.out.data(), n);
  });
}

void Norms() {
  for (const bool centre : {false, true})
    ForSizes("norm", [centre](int64_t n, Data& d, Hash* h) {
      const rillet::RowNorm norm{n, 1e-3f, centre, d.z.data(), centre ? d.y.data() : nullptr};
      float statistics[2];
      loops.norm_row(norm, d.x.data(), d.out.data());
      h->Add(d.out.data(), n);
      loops.norm_row_grad(norm, d.x.data(), d.y.data(), d.out.data(), statistics, statistics + 1);
      h->Add(d.out.data(), n);
      h->Add(statistics, 2);
    });
  ForSizes("l2_normalize", [](int64_t n, Data& d, Hash* h) {
    loops.l2_normalize(d.x.data(), n, 1e-6f, d.out.data());
    h->Add(d.out.data(), n);
  });
}

void Pools() {
  ForSizes("pools", [](int64_t n, Data& d, Hash* h) {
    const float* taps[9];
    for (int64_t t = 0; t < 9; ++t) taps[t] = d.x.data() + t * n;
    loops.max_taps(taps, 9, n, d.out.data());
    h->Add(d.out.data(), n);
    loops.max_tap_grad(taps[4], d.out.data(), d.y.data(), n, d.other.data(), d.z.data());
    h->Add(d.other.data(), n);
    loops.mean_taps(taps, 9, n, 9.0f, d.out.data());
    h->Add(d.out.data(), n);
  });
}

void Normals() {
  std::vector<float> u = Numbers(5, 4096, 0x1p-17f), turn = Numbers(6, 4096, 0x1p-16f), z(8192);
  for (size_t i = 0; i < 4096; ++i) {
    u[i] += 0.25f + 0x1p-17f;  // (0, 1/2]
    turn[i] += 0.5f;           // [0, 1)
  }
  loops.normal_pairs(u.data(), turn.data(), 4096, z.data());
  Hash hash;
  hash.Add(z.data(), 8192);
  hash.Print("normal_pairs");
}

}  // namespace

int main() {
  Rows();
  Columns();
  Losses();
  Norms();
  Pools();
  Normals();
}
