module jali-peer

go 1.22

require github.com/tuneinsight/lattigo/v6 v6.2.0
