#include <treadle/plugin.h>

#include "sentencepiece.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::sentencepiece_plugin::SentencePiece>("sentencepiece");
}
