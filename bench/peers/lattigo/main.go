// Times CKKS, BGV and BFV operations of Lattigo on one thread. Reads lines "OPERATION REPS" and answers each with
// one line of JSON: {"op", "seconds": [...], "cpu_seconds": [...], "error": largest slot error of the
// operation's result, "mean_bits": mean precision of its real and imaginary parts}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

type answer struct {
	Op      string    `json:"op"`
	Seconds []float64 `json:"seconds"`
	CPU     []float64 `json:"cpu_seconds"`
	Error   float64   `json:"error"`
	Mean    float64   `json:"mean_bits"`
	Values  []int64   `json:"values,omitempty"` // the decrypted numbers, of a known circuit
}

type operation struct {
	run    func()
	errors func() []complex128 // the errors of the last run's result, slot by slot
	values func() []int64      // the last run's result, if the reader compares it
}

// Processor time of the whole process, in seconds.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func randomSlots(slots int) []complex128 {
	v := make([]complex128, slots)
	for i := range v {
		v[i] = complex(2*rand.Float64()-1, 2*rand.Float64()-1)
	}
	return v
}

func main() {
	runtime.GOMAXPROCS(1)
	which := ""
	if len(os.Args) > 1 {
		which = os.Args[1]
	}
	if which == "bootstrap" {
		answerLines(bootstrapOperations())
	} else if which == "bgv" || which == "bfv" {
		answerLines(discreteOperations(which == "bfv"))
	} else {
		answerLines(primitiveOperations(which))
	}
}

func primitiveOperations(modulus string) (map[string]operation, string) {
	// log Q = 60 + 5 * 45 = 285 in six primes, two special primes: three digits.
	literal := ckks.ParametersLiteral{
		LogN: 14, LogQ: []int{60, 45, 45, 45, 45, 45}, LogP: []int{60, 60}, LogDefaultScale: 45,
	}
	// With one special prime: log Q = 53 + 7 * 46 = 375, log P = 55, one digit for each of the eight primes.
	if modulus == "q375" {
		literal.LogQ = []int{53, 46, 46, 46, 46, 46, 46, 46}
		literal.LogP = []int{55}
		literal.LogDefaultScale = 46
	}
	params, err := ckks.NewParametersFromLiteral(literal)
	check(err)

	keygen := rlwe.NewKeyGenerator(params)
	sk := keygen.GenSecretKeyNew()
	rlk := keygen.GenRelinearizationKeyNew(sk)
	galois := keygen.GenGaloisKeyNew(params.GaloisElement(1), sk)
	eval := ckks.NewEvaluator(params, rlwe.NewMemEvaluationKeySet(rlk, galois))
	encoder := ckks.NewEncoder(params)
	encryptor := rlwe.NewEncryptor(params, sk)
	decryptor := rlwe.NewDecryptor(params, sk)

	slots := params.MaxSlots()
	fresh := func() ([]complex128, *rlwe.Ciphertext) {
		v := randomSlots(slots)
		pt := ckks.NewPlaintext(params, params.MaxLevel())
		check(encoder.Encode(v, pt))
		ct, err := encryptor.EncryptNew(pt)
		check(err)
		return v, ct
	}
	va, a := fresh()
	vb, b := fresh()
	errors := func(ct *rlwe.Ciphertext, want []complex128) []complex128 {
		got := make([]complex128, slots)
		check(encoder.Decode(decryptor.DecryptNew(ct), got))
		for i := range got {
			got[i] -= want[i]
		}
		return got
	}
	product := make([]complex128, slots)
	rotated := make([]complex128, slots)
	for i := range product {
		product[i] = va[i] * vb[i]
		rotated[i] = va[(i+1)%slots]
	}

	// Outputs are allocated beforehand, as Lattigo's own benchmarks do.
	tensor := ckks.NewCiphertext(params, 1, params.MaxLevel())
	scaled := ckks.NewCiphertext(params, 1, params.MaxLevel()-1)
	turned := ckks.NewCiphertext(params, 1, params.MaxLevel())
	operations := map[string]operation{
		"multiply_relinearise_rescale": {
			run: func() {
				check(eval.MulRelin(a, b, tensor))
				check(eval.Rescale(tensor, scaled))
			},
			errors: func() []complex128 { return errors(scaled, product) },
		},
		"rotate": {
			run:    func() { check(eval.Rotate(a, 1, turned)) },
			errors: func() []complex128 { return errors(turned, rotated) },
		},
	}
	return operations, fmt.Sprintf("{\"ready\": \"lattigo\", \"log_n\": %d, \"log_q\": %.1f, \"log_p\": %.1f}",
		params.LogN(), params.LogQ(), params.LogP())
}

func answerLines(operations map[string]operation, about string) {
	fmt.Println(about)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var op string
		var reps int
		n, _ := fmt.Sscan(lines.Text(), &op, &reps)
		operation, known := operations[op]
		if n != 2 || !known || reps < 1 {
			fmt.Println(`{"error": "expected: OPERATION REPS"}`)
			continue
		}
		out := answer{Op: op}
		for i := 0; i < reps; i++ {
			start, cpu := time.Now(), cpuSeconds()
			operation.run()
			out.CPU = append(out.CPU, cpuSeconds()-cpu)
			out.Seconds = append(out.Seconds, time.Since(start).Seconds())
		}
		errors := operation.errors()
		if mean := meanPrecision(errors); !math.IsInf(mean, 0) {
			out.Mean = mean
		}
		if operation.values != nil {
			out.Values = operation.values()
		}
		for _, e := range errors {
			out.Error = math.Max(out.Error, cmplx.Abs(e))
		}
		text, _ := json.Marshal(out)
		fmt.Println(string(text))
	}
}
