int from_nowhere() {
  return 1;
}
