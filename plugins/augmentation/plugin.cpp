#include <treadle/plugin.h>

#include "color_jitter.h"
#include "mixing.h"
#include "noise.h"
#include "rand_augment.h"
#include "random_affine.h"
#include "random_crop.h"
#include "random_erasing.h"
#include "random_flip.h"
#include "random_resized_crop.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::augmentation::ColorJitter>("color_jitter");
  registrar.add<treadle::augmentation::Cutmix>("cutmix");
  registrar.add<treadle::augmentation::Mixup>("mixup");
  registrar.add<treadle::augmentation::Noise>("noise");
  registrar.add<treadle::augmentation::RandAugment>("rand_augment");
  registrar.add<treadle::augmentation::RandomAffine>("random_affine");
  registrar.add<treadle::augmentation::RandomCrop>("random_crop");
  registrar.add<treadle::augmentation::RandomErasing>("random_erasing");
  registrar.add<treadle::augmentation::RandomFlip>("random_flip");
  registrar.add<treadle::augmentation::RandomResizedCrop>("random_resized_crop");
  registrar.add<treadle::augmentation::TrivialAugment>("trivial_augment");
}
