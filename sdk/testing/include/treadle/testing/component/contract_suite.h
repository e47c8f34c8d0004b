#pragma once

#include <gtest/gtest.h>

/// Links the claims of `Suite`, which are compiled in treadle::testing, with each program that sees
/// the suite's declaration.
#define TREADLE_LINK_CLAIMS(Suite) \
  int claims_of_##Suite();         \
  inline const int claims_of_##Suite##_are_linked = claims_of_##Suite()

/// Declares `Suite`, a contract suite of GoogleTest over cases of type `Case`. A program that
/// instantiates it runs its claims.
#define TREADLE_CONTRACT_SUITE(Suite, Case)               \
  class Suite : public ::testing::TestWithParam<Case> {}; \
  TREADLE_LINK_CLAIMS(Suite)
