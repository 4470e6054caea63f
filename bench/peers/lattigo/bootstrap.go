package main

import (
	"fmt"
	"math"

	"github.com/tuneinsight/lattigo/v6/circuits/ckks/bootstrapping"
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils"
)

// Bootstrapping with Lattigo's default set N16QP1546H192H32, which has 2^15 complex slots and leaves nine levels of
// 40 bits.
func bootstrapOperations() (map[string]operation, string) {
	set := bootstrapping.N16QP1546H192H32
	params, err := ckks.NewParametersFromLiteral(set.SchemeParams)
	check(err)
	literal := set.BootstrappingParams
	literal.LogN = utils.Pointy(params.LogN())
	circuit, err := bootstrapping.NewParametersFromLiteral(params, literal)
	check(err)
	sk := rlwe.NewKeyGenerator(params).GenSecretKeyNew()
	keys, _, err := circuit.GenEvaluationKeys(sk)
	check(err)
	eval, err := bootstrapping.NewEvaluator(circuit, keys)
	check(err)

	encoder := ckks.NewEncoder(params)
	decryptor := rlwe.NewDecryptor(params, sk)
	want := randomSlots(params.MaxSlots())
	pt := ckks.NewPlaintext(params, 0)
	check(encoder.Encode(want, pt))
	low, err := rlwe.NewEncryptor(params, sk).EncryptNew(pt)
	check(err)
	var high *rlwe.Ciphertext
	about := fmt.Sprintf("{\"ready\": \"lattigo\", \"set\": \"N16QP1546H192H32\", \"log_n\": %d, \"log_q\": %.1f, "+
		"\"log_p\": %.1f, \"levels_left\": %d}", params.LogN(), circuit.BootstrappingParameters.LogQ(),
		circuit.BootstrappingParameters.LogP(), eval.OutputLevel())
	return map[string]operation{"bootstrap": {
		run: func() {
			high, err = eval.Bootstrap(low.CopyNew())
			check(err)
		},
		errors: func() []complex128 {
			got := make([]complex128, len(want))
			check(encoder.Decode(decryptor.DecryptNew(high), got))
			for i := range got {
				got[i] -= want[i]
			}
			return got
		},
	}}, about
}

// The precision in bits: -log2 of the mean absolute error, over real and imaginary parts.
func meanPrecision(errors []complex128) float64 {
	sum := 0.0
	for _, e := range errors {
		sum += math.Abs(real(e)) + math.Abs(imag(e))
	}
	return -math.Log2(sum / float64(2*len(errors)))
}
