#include <treadle/plugin.h>

#include "byte_bpe.h"
#include "bytes.h"
#include "characters.h"
#include "words.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::tokenizers;
  registrar.add<ByteBpe>("byte_bpe");
  registrar.add<Bytes>("bytes");
  registrar.add<Characters>("characters");
  registrar.add<Words>("words");
}
