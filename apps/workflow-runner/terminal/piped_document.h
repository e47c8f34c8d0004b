#pragma once

namespace treadle::cli {

/// A document that comes through a pipe, as in `check /dev/stdin` or `run <(generate)`, can be read
/// once, and a command reads it several times, also after another program has taken the process
/// over. Reads it into memory and puts that in the place of the pipe: of the descriptor that `word`
/// names, or, for a pipe with a name, of `word`, which then points to text that lives as long as
/// the process. Leaves files alone. What cannot be read stays as it is: its reader says why.
void keep_piped_document(char*& word);

}  // namespace treadle::cli
