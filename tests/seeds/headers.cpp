// Belongs to the precompiled headers of the tests; it has no code.
int main() {}
