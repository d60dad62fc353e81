// What a step of the engine returns: a status of rillet.h and, if it failed, why.
#pragma once
#include <string>

#include "rillet.h"

namespace rillet {

struct [[nodiscard]] Result {
  rillet_status status = RILLET_OK;
  std::string text;
  bool ok() const { return status == RILLET_OK; }
};

Result Refuse(rillet_status status, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Returns from the calling function if `expression` failed.
#define RILLET_TRY(expression)                                   \
  do {                                                           \
    if (::rillet::Result r_ = (expression); !r_.ok()) return r_; \
  } while (0)

}  // namespace rillet
