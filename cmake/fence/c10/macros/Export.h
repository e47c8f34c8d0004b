// Found before libtorch's header of this name by libraries that must do without: see treadle_fence_off_libtorch().
#error "this library must not know libtorch; what needs tensors belongs to core, engine or host/run"
