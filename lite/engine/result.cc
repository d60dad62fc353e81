#include "result.h"

#include <cstdarg>
#include <cstdio>

namespace rillet {

Result Refuse(rillet_status status, const char* format, ...) {
  char text[768];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  return {status, text};
}

}  // namespace rillet
