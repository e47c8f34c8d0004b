#include <treadle/plugin.h>

#include "noise.h"
#include "random_crop.h"
#include "random_flip.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::augmentation::Noise>("noise");
  registrar.add<treadle::augmentation::RandomCrop>("random_crop");
  registrar.add<treadle::augmentation::RandomFlip>("random_flip");
}
