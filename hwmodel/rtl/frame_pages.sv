// Who writes and who reads the two pages of a memory of frames of T beats. A page may be read when its last beat has been
// taken in, and be written when its last beat is read; so frames follow each other without a gap.
module frame_pages #(
    parameter int T = 16,
    parameter int ROW = $clog2(T)
) (
    input logic clk,
    input logic rst,
    input logic in_valid,
    output logic in_ready,
    output logic write,  // this beat goes to write_page, write_row
    output logic write_page,
    output logic [ROW-1:0] write_row,
    input logic read,  // the reader takes read_page, read_row if it may
    output logic read_valid,
    output logic read_page,
    output logic [ROW-1:0] read_row
);
  localparam logic [ROW-1:0] LAST = ROW'(T - 1);
  logic [1:0] full;
  assign in_ready = ~full[write_page] & ~rst;
  assign write = in_valid & in_ready;
  assign read_valid = full[read_page];
  always_ff @(posedge clk) begin
    if (rst) begin
      full <= 2'b00;
      write_page <= 1'b0;
      write_row <= '0;
      read_page <= 1'b0;
      read_row <= '0;
    end else begin
      if (write) begin
        write_row <= write_row == LAST ? '0 : write_row + 1'b1;
        if (write_row == LAST) begin
          write_page <= ~write_page;
          full[write_page] <= 1'b1;
        end
      end
      if (read & read_valid) begin
        read_row <= read_row == LAST ? '0 : read_row + 1'b1;
        if (read_row == LAST) begin
          read_page <= ~read_page;
          full[read_page] <= 1'b0;
        end
      end
    end
  end
endmodule
