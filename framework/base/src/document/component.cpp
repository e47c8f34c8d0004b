#include <treadle/base/component.h>

namespace treadle {

Component::Component() = default;
Component::~Component() = default;

void* Component::do_ask(std::string_view) {
  return nullptr;
}

Registrar::~Registrar() = default;

}  // namespace treadle
