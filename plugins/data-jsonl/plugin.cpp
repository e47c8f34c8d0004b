#include <treadle/plugin.h>

#include "jsonl_data.h"
#include "jsonl_writer.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::jsonl::JsonlData>("jsonl");
  registrar.add<treadle::jsonl::JsonlWriter>("jsonl");
}
