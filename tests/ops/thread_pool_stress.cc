// Loops of every size on pools of several threads: each item is visited exactly once, by a thread of the pool, also
// when there are more threads than cores and when the pool has just gone to sleep. Built and run by
// test_thread_pool.py.
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "thread_pool.h"

int main() {
  for (int threads : {1, 2, 3, 7}) {
    rillet::ThreadPool pool(threads);
    for (int64_t n : {0, 1, 2, 3, 5, 64, 1000}) {
      for (int64_t grain : {1, 2, 7, 1000}) {
        for (int round = 0; round < 20; ++round) {
          std::vector<int> visits(static_cast<size_t>(n));  // not atomic: the sanitizer sees two threads on one item
          pool.ParallelFor(n, grain, [&](int64_t begin, int64_t end, int thread) {
            if (thread < 0 || thread >= threads) std::printf("thread %d of %d\n", thread, threads);
            for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
            if (begin == 0 && end == n) return;
            // A loop within a loop that is cut runs inline, as the same thread.
            pool.ParallelFor(3, 1, [&](int64_t b, int64_t e, int inner) {
              if (b != 0 || e != 3 || inner != thread)
                std::printf("thread %d: inner loop [%d, %d) as %d\n", thread, static_cast<int>(b), static_cast<int>(e),
                            inner);
            });
          });
          for (int v : visits)
            if (v != 1)
              std::printf("n %lld, grain %lld: an item was visited %d times\n", static_cast<long long>(n),
                          static_cast<long long>(grain), v);
          if (round % 10 == 9) std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
      }
    }
  }
  std::printf("done\n");
}
