"""What people can install, made of this tree's own build; tools/dist is the program."""
