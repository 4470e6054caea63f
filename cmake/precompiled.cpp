// The precompiled headers of jali_std need a file that is compiled with them.
