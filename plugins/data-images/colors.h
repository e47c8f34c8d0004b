#pragma once

#include "picture.h"
#include "picture_form.h"

namespace treadle::images {

/// Changes a picture's channels for `mode`, as Pillow's convert() does: alpha is dropped by kRgb
/// and kGray; gray is round(0.299 R + 0.587 G + 0.114 B), in 16 fractional bits. One channel stays
/// one for kRgb, whose planes are equal then; a picture without alpha stays so for kRgba.
void convert(PictureForm::Mode mode, Picture& picture);

/// Colors times alpha, before a picture with alpha is scaled, and divided by it afterwards: what is
/// transparent has no color to mix.
void premultiply(Picture& picture);
void unpremultiply(Picture& picture);

}  // namespace treadle::images
