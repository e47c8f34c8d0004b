// An ordinary library that somebody put beside the plugins.
int answer() {
  return 42;
}
