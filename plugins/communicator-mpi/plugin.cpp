#include <treadle/plugin.h>

#include "mpi_communicator.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::mpi_group::MpiCommunicator>("mpi");
}
