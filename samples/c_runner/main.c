/* Runs a model on zeros and prints the start of each output: cc main.c -lrillet; ./main model.rlt */
#include <rillet.h>
#include <stdio.h>
#include <string.h>

static int failed(void) { return fprintf(stderr, "%s\n", rillet_error()), 1; }

int main(int argc, char** argv) {
  rillet_model* model;
  rillet_context* context;
  rillet_tensor_info info;
  if (argc != 2) return fprintf(stderr, "usage: %s MODEL\n", argv[0]), 2;
  if (rillet_model_load_file(argv[1], &model) || rillet_context_new(model, 1, &context)) return failed();
  for (int i = 0; i < rillet_input_count(context); ++i) {
    void* data = rillet_input_data(context, i); /* write your input here */
    if (!data || rillet_input_info(context, i, &info)) return failed();
    memset(data, 0, info.bytes);
  }
  if (rillet_run(context)) return failed();
  for (int i = 0; i < rillet_output_count(context); ++i) {
    const float* y = rillet_output_data(context, i);
    if (rillet_output_info(context, i, &info)) return failed();
    printf("%s: %zu bytes, the first value is %g\n", info.name, info.bytes, info.dtype == RILLET_F32 ? y[0] : 0.0);
  }
}
