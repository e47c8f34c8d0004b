#pragma once

#include "contract_cases.h"
#include "contract_result.h"

namespace treadle::cli {

/// Tests all claims of the contract suites that can be tested on the subject's components. Once in
/// a process. What crashes in a claim ends the process with a message that names the claim.
ContractResult test_claims(const ContractSubject& subject);

}  // namespace treadle::cli
