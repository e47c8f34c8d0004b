#pragma once

#include <treadle/testing/component/contract_suite.h>

/// Begins a claim of the suite `Interface`Contract, whose body uses what `Interface`Claims has, the
/// class with which a file of claims begins. So a suite's header shows its cases alone.
#define CLAIM(Interface, Name)                          \
  namespace {                                           \
  struct Interface##_##Name final : Interface##Claims { \
    void holds();                                       \
  };                                                    \
  }                                                     \
  TEST_P(Interface##Contract, Name) {                   \
    Interface##_##Name().holds();                       \
  }                                                     \
  void Interface##_##Name::holds()

/// What the suite's declaration asks for. A program may be linked with claims of a suite beside
/// those that it instantiates.
#define LINKS_CLAIMS_OF(Interface)        \
  int claims_of_##Interface##Contract() { \
    return 0;                             \
  }                                       \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Interface##Contract);
